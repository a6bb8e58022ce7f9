from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from moorage_cluster.apiserver.embedded import Settings
from tests.apiserver.client import Cluster, Watcher, configmap, node, pod, settled

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
NODES = "/api/v1/nodes"
HISTORY = 10
INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


@pytest.fixture
def forgetful() -> Iterator[Cluster]:
    cluster = Cluster(Settings(history=HISTORY))
    yield cluster
    cluster.close()


def version(cluster: Cluster) -> int:
    return int(cluster.get(PODS)["metadata"]["resourceVersion"])


def label(cluster: Cluster, path: str, **labels: str | None) -> Any:
    return cluster.patch(path, "merge", {"metadata": {"labels": labels}}).json


def test_events_from_a_version_on(cluster: Cluster) -> None:
    cluster.create(NODES, node("before"))
    start = version(cluster)
    made = cluster.create(NODES, node("a"))
    changed = label(cluster, f"{NODES}/a", x="y")
    watcher = cluster.watch(NODES, resourceVersion=start)
    cluster.delete(f"{NODES}/a")
    events = watcher.events()
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event["object"] for event in events[:2]] == [made, changed]
    gone = events[2]["object"]["metadata"]
    # The last state, under the version of the deletion.
    assert gone["labels"]["x"] == "y"
    assert int(gone["resourceVersion"]) == int(changed["metadata"]["resourceVersion"]) + 1


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}])
def test_without_a_version_the_state_comes_first(cluster: Cluster, query: dict[str, str]) -> None:
    cluster.create(NODES, node("a"))
    watcher = cluster.watch(NODES, **query)
    cluster.create(NODES, node("b"))
    assert watcher.seen() == [("ADDED", "a"), ("ADDED", "b")]


def test_other_namespaces_and_kinds_are_not_seen(cluster: Cluster) -> None:
    cluster.create("/api/v1/namespaces", {"metadata": {"name": "other"}})
    here, everywhere = cluster.watch(PODS), cluster.watch("/api/v1/pods")
    cluster.create("/api/v1/namespaces/other/pods", pod("a", "other"))
    cluster.create(MAPS, configmap("m"))
    cluster.create(PODS, pod("b"))
    assert here.seen() == [("ADDED", "b")]
    assert everywhere.seen() == [("ADDED", "a"), ("ADDED", "b")]


def test_selected_objects_come_and_go(cluster: Cluster) -> None:
    cluster.create(NODES, node("a", zone="1"))
    watcher = cluster.watch(NODES, labelSelector="zone=1")
    cluster.create(NODES, node("b", zone="2"))
    label(cluster, f"{NODES}/b", zone="1")
    label(cluster, f"{NODES}/b", more="labels")
    last = label(cluster, f"{NODES}/a", zone=None)
    label(cluster, f"{NODES}/a", zone="2")
    cluster.delete(f"{NODES}/a")
    cluster.delete(f"{NODES}/b")
    events = watcher.events()
    seen = [(event["type"], event["object"]["metadata"]["name"]) for event in events]
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a"), ("DELETED", "b")]
    assert events[3]["object"]["metadata"]["resourceVersion"] == last["metadata"]["resourceVersion"]


def test_field_selected_pods_leave_when_bound(cluster: Cluster) -> None:
    cluster.create(NODES, node("n"))
    unbound = cluster.watch(PODS, fieldSelector="spec.nodeName=")
    on_node = cluster.watch(PODS, fieldSelector="spec.nodeName=n")
    cluster.create(PODS, pod("a"))
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    assert cluster.post(f"{PODS}/a/binding", binding).code == 201
    assert unbound.seen() == [("ADDED", "a"), ("DELETED", "a")]
    assert on_node.seen() == [("ADDED", "a")]


def test_all_watchers_see_the_same_order(cluster: Cluster) -> None:
    watchers = [cluster.watch(PODS) for _ in range(5)]
    for number in range(30):
        cluster.create(PODS, pod(f"p{number}"))
        if number % 3 == 0:
            cluster.delete(f"{PODS}/p{number}")
    first, *others = [watcher.events() for watcher in watchers]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in first]
    assert len(first) == 40
    assert versions == sorted(set(versions))
    assert all(events == first for events in others)


def test_bookmarks_are_sent_each_minute_if_requested(cluster: Cluster) -> None:
    start = version(cluster)
    wants = cluster.watch(PODS, resourceVersion=start, allowWatchBookmarks="true")
    does_not = cluster.watch(PODS, resourceVersion=start)
    assert wants.events() == []
    cluster.create(MAPS, configmap("elsewhere"))
    cluster.advance(59)
    assert wants.events() == []
    cluster.advance(1)
    (mark,) = wants.events()
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["kind"] == "Pod"
    assert mark["object"]["apiVersion"] == "v1"
    assert int(mark["object"]["metadata"]["resourceVersion"]) == version(cluster)
    cluster.advance(60)
    assert [event["type"] for event in wants.events()] == ["BOOKMARK"]
    assert does_not.events() == []


def test_initial_events_end_with_a_mark(cluster: Cluster) -> None:
    cluster.create(PODS, pod("a"))
    watcher = cluster.watch(PODS, allowWatchBookmarks="true", **INITIAL)
    first, mark = watcher.events()
    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(mark["object"]["metadata"]["resourceVersion"]) == version(cluster)
    cluster.create(PODS, pod("b"))
    assert watcher.seen() == [("ADDED", "b")]


def test_a_watch_without_initial_events(cluster: Cluster) -> None:
    cluster.create(PODS, pod("a"))
    watcher = cluster.watch(PODS, sendInitialEvents="false", resourceVersionMatch="NotOlderThan")
    assert watcher.events() == []
    cluster.create(PODS, pod("b"))
    assert watcher.seen() == [("ADDED", "b")]


BAD_OPTIONS: dict[str, tuple[dict[str, Any], int, str]] = {
    "initial events without match": (
        {"sendInitialEvents": "true"},
        422,
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    ),
    "match without initial events": (
        {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
        422,
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
    ),
    "future": ({"resourceVersion": str(10**18)}, 504, "Too large resource version"),
    "field": ({"fieldSelector": "spec.x=1"}, 400, "field label not supported: spec.x"),
    "version": ({"resourceVersion": "x"}, 400, 'Invalid value: "x"'),
}


@pytest.mark.parametrize(("options", "code", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options(cluster: Cluster, options: dict[str, Any], code: int, message: str) -> None:
    answer = cluster.get(PODS, watch="1", **options)
    assert answer.code == code, answer
    assert message in answer.message


def test_watch_ends_in_time(cluster: Cluster) -> None:
    short = cluster.watch(PODS, timeoutSeconds=5)
    endless = cluster.watch(PODS)
    cluster.advance(4)
    assert short.events() == []
    assert not short.ended
    cluster.advance(1)
    assert short.events() == []
    assert short.ended
    cluster.advance(1800)
    endless.events()
    cluster.advance(1800)
    endless.events()
    assert endless.ended


def test_forgotten_version(forgetful: Cluster) -> None:
    start = version(forgetful)
    for number in range(2 * HISTORY):
        forgetful.create(PODS, pod(f"p{number}"))
    answer = forgetful.get(PODS, watch="1", resourceVersion=start)
    assert (answer.code, answer["reason"]) == (410, "Expired")
    assert answer.message.startswith(f"too old resource version: {start} (")
    oldest = int(answer.message.partition("(")[2].rstrip(")"))
    assert len(forgetful.watch(PODS, resourceVersion=oldest).events()) == HISTORY


def test_slow_client_is_cut_off(forgetful: Cluster) -> None:
    slow, quick = forgetful.watch(PODS), forgetful.watch(PODS)
    for number in range(HISTORY):
        forgetful.create(PODS, pod(f"p{number}"))
    assert len(slow.events()) == len(quick.events()) == HISTORY
    seen = []
    for number in range(3 * HISTORY):
        forgetful.create(PODS, pod(f"q{number}"))
        seen += quick.seen()
    assert seen == [("ADDED", f"q{number}") for number in range(3 * HISTORY)]
    *before, error = slow.events()
    assert len(before) < HISTORY
    assert error["type"] == "ERROR"
    assert (error["object"]["kind"], error["object"]["code"]) == ("Status", 410)
    assert error["object"]["reason"] == "Expired"
    assert slow.ended
    assert not quick.ended


def test_other_kinds_do_not_make_a_watcher_slow(forgetful: Cluster) -> None:
    start = version(forgetful)
    for number in range(3 * HISTORY):
        forgetful.create(MAPS, configmap(f"m{number}"))
    watcher = forgetful.watch(PODS, resourceVersion=start)
    forgetful.create(PODS, pod("a"))
    assert watcher.seen() == [("ADDED", "a")]


def test_tables_have_their_header_once(cluster: Cluster) -> None:
    cluster.create(PODS, pod("a"))
    watcher = cluster.watch(PODS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    cluster.create(PODS, pod("b"))
    tables = [event["object"] for event in watcher.events()]
    assert [table["kind"] for table in tables] == ["Table", "Table"]
    assert [table["rows"][0]["cells"][0] for table in tables] == ["a", "b"]
    assert [bool(table["columnDefinitions"]) for table in tables] == [True, False]


def test_bare_metadata(cluster: Cluster) -> None:
    cluster.create(PODS, pod("a"))
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    watcher = cluster.watch(PODS, accept=accept, allowWatchBookmarks="true", **INITIAL)
    objects = [event["object"] for event in watcher.events()]
    assert [(obj["kind"], obj["apiVersion"]) for obj in objects] == [
        ("PartialObjectMetadata", "meta.k8s.io/v1")
    ] * 2
    assert [set(obj) for obj in objects] == [{"kind", "apiVersion", "metadata"}] * 2


def test_closed_watch_leaves_nothing_behind(cluster: Cluster) -> None:
    watcher = cluster.watch(PODS)
    watcher.events()
    collection = cluster.server.store.collection("/pods")
    assert len(collection.waiting) == 1
    watcher.close()
    assert watcher.ended
    assert not collection.waiting


def test_a_slow_watcher_of_large_objects_has_few_of_them_held_for_it(cluster: Cluster) -> None:
    before = cluster.watch(MAPS)
    for number in range(5):
        cluster.create(MAPS, configmap(f"a{number}", k="x" * 200_000))
    for watcher in (before, cluster.watch(MAPS)):
        pieces = [len(piece) for piece in _pieces_so_far(cluster, watcher)]
        assert sum(pieces) > 1_000_000
        assert max(pieces) < 500_000


def _pieces_so_far(cluster: Cluster, watcher: Watcher) -> list[bytes]:
    async def read() -> list[bytes]:
        found: list[bytes] = []
        iterator = aiter(watcher.stream)
        while True:
            following = asyncio.ensure_future(_next(iterator))
            await settled()
            if not following.done():
                watcher.stream.close()
                await asyncio.wait((following,))
                return found
            found.append(following.result())

    return cluster.run(read())


async def _next(pieces: AsyncIterator[bytes]) -> bytes:
    return await anext(pieces, b"")
