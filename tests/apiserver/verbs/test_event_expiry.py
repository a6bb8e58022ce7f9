"""Events go an hour after they were last written, so that they cannot fill the server for ever."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from moorage_cluster.apiserver.embedded import Settings
from moorage_cluster.apiserver.store import Change, Collection
from tests.apiserver.client import Cluster, configmap

EVENTS = "/api/v1/namespaces/default/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
HOUR = 3600


def core_event(name: str) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "type": "Normal", "count": 1}


def new_event(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "eventTime": "2026-03-01T12:00:00.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
        "action": "A",
        "reason": "R",
        "type": "Normal",
    }


def test_events_of_both_groups_expire_and_watchers_see_it(cluster: Cluster) -> None:
    cluster.create(EVENTS, core_event("a"))
    cluster.create(NEW_EVENTS, new_event("b"))
    cluster.create("/api/v1/namespaces/default/configmaps", configmap("stays"))
    watchers = [cluster.watch(path, timeoutSeconds=2 * HOUR) for path in (EVENTS, NEW_EVENTS)]
    assert [watcher.seen() for watcher in watchers] == [[("ADDED", "a"), ("ADDED", "b")]] * 2
    cluster.advance(HOUR - 1)
    assert cluster.exists(f"{EVENTS}/a")
    cluster.advance(2)
    assert [watcher.seen() for watcher in watchers] == [[("DELETED", "a"), ("DELETED", "b")]] * 2
    assert not cluster.exists(f"{NEW_EVENTS}/a")
    cluster.advance(HOUR)
    assert cluster.exists("/api/v1/namespaces/default/configmaps/stays")


def test_update_begins_the_hour_again(cluster: Cluster) -> None:
    for name in "ab":
        cluster.create(EVENTS, core_event(name))
    cluster.advance(HOUR / 2)
    assert cluster.patch(f"{EVENTS}/a", "merge", {"count": 2}).code == 200
    cluster.advance(HOUR / 2 + 1)
    assert [cluster.exists(f"{EVENTS}/{name}") for name in "ab"] == [True, False]
    cluster.advance(HOUR / 2)
    assert not cluster.exists(f"{EVENTS}/a")


def test_event_that_was_deleted_and_made_again_has_its_own_hour(cluster: Cluster) -> None:
    cluster.create(EVENTS, core_event("a"))
    cluster.advance(HOUR - 10)
    cluster.delete(f"{EVENTS}/a")
    cluster.create(EVENTS, core_event("a"))
    cluster.advance(HOUR - 10)
    assert cluster.exists(f"{EVENTS}/a")


def test_flood_of_events_expires_in_small_steps() -> None:
    cluster = Cluster(Settings(event_ttl_seconds=60))
    store, steps, current = cluster.server.store, Counter[int](), 0
    cluster.create(EVENTS, core_event("first"))
    for index in range(999):
        event = {"apiVersion": "v1", "kind": "Event", **core_event(f"e{index}")}
        store.put(store.collection("/events"), event, {})

    def note(collection: Collection, change: Change) -> None:
        steps[current] += 1
        asyncio.get_running_loop().call_soon(begin_step)

    def begin_step() -> None:
        nonlocal current
        current += 1

    store.listeners.append(note)
    cluster.advance(62)
    assert steps.total() == 1000
    assert max(steps.values()) <= 200, "requests get their turn in between"
    cluster.close()


def test_events_are_kept_for_ever_if_asked_for() -> None:
    cluster = Cluster(Settings(event_ttl_seconds=0))
    cluster.create(EVENTS, core_event("a"))
    cluster.advance(100 * HOUR)
    assert cluster.exists(f"{EVENTS}/a")
    cluster.close()


def test_events_from_before_a_restart_expire_too(tmp_path: Path) -> None:
    cluster = Cluster(Settings(tmp_path))
    cluster.create(EVENTS, core_event("a"))
    cluster.close()
    cluster = Cluster(Settings(tmp_path))
    cluster.advance(0)
    assert cluster.exists(f"{EVENTS}/a")
    cluster.advance(HOUR + 1)
    assert not cluster.exists(f"{EVENTS}/a")
    cluster.close()
