from __future__ import annotations

import threading
from collections.abc import Generator
from itertools import islice
from typing import Any

from kubernetes import client, watch

from tests.apiserver.python_client.client_objects import config_map, names, refused
from tests.apiserver.python_client.conftest import HISTORY

Seen = tuple[str, str]


def seen(event: Any) -> Seen:
    return event["type"], event["object"].metadata.name


def write(core: client.CoreV1Api, namespace: str, first: int, last: int) -> None:
    for number in range(first, last):
        core.create_namespaced_config_map(namespace, config_map(f"m{number:03}"))


def taken(events: Generator[Any], many: int) -> list[Any]:
    """So many events, and no more."""
    try:
        return list(islice(events, many))
    finally:
        events.close()


def watched(core: client.CoreV1Api, namespace: str, **options: Any) -> Generator[Any]:
    events: Generator[Any] = watch.Watch().stream(
        core.list_namespaced_config_map, namespace, **{"timeout_seconds": 20, **options}
    )
    return events


class Follower:
    """Keeps a copy of a namespace's config maps by list and watch, as informers do."""

    def __init__(self, core: client.CoreV1Api, namespace: str) -> None:
        self._core = core
        self._namespace = namespace
        self.version = ""
        self.known: dict[str, str] = {}
        self.history: list[Seen] = []
        self.lists = 0

    def list(self) -> None:
        found = self._core.list_namespaced_config_map(self._namespace)
        self.lists += 1
        fresh = {item.metadata.name: item.metadata.resource_version for item in found.items}
        self.history += [("ADDED", name) for name in sorted(fresh.keys() - self.known.keys())]
        self.history += [("DELETED", name) for name in sorted(self.known.keys() - fresh.keys())]
        self.known, self.version = fresh, found.metadata.resource_version

    def follow(self, until: str) -> None:
        """Watch on until an object of a name has been seen; list anew when told so."""
        if not self.version:
            self.list()
        while until not in self.known:
            events = watched(self._core, self._namespace, resource_version=self.version)
            try:
                for event in events:
                    meta = event["object"].metadata
                    self.history.append((event["type"], meta.name))
                    self.version = meta.resource_version
                    if event["type"] == "DELETED":
                        del self.known[meta.name]
                    else:
                        self.known[meta.name] = meta.resource_version
                    if meta.name == until:
                        return
            except client.ApiException as error:
                if error.status != 410:
                    raise
                self.list()
            finally:
                events.close()


def test_resume_after_410_loses_and_repeats_nothing(core: client.CoreV1Api, namespace: str) -> None:
    follower = Follower(core, namespace)
    follower.list()
    write(core, namespace, 0, 5)
    follower.follow(until="m004")
    old = follower.version
    core.delete_namespaced_config_map("m001", namespace)
    write(core, namespace, 5, 5 + 2 * HISTORY)
    with refused(410, "Expired") as refusal:
        taken(watched(core, namespace, resource_version=old), 1)
    assert refusal.message.startswith(f"too old resource version: {old} (")
    follower.follow(until=f"m{4 + 2 * HISTORY:03}")
    write(core, namespace, 100, 105)
    follower.follow(until="m104")
    assert follower.lists == 2
    assert list(follower.known) == names(core.list_namespaced_config_map(namespace))
    assert len(follower.history) == len(set(follower.history))
    added = [name for kind, name in follower.history if kind == "ADDED" and name != "kube-root-ca.crt"]
    assert added == [f"m{number:03}" for number in (*range(5 + 2 * HISTORY), *range(100, 105))]
    assert [name for kind, name in follower.history if kind == "DELETED"] == ["m001"]


def test_watch_from_a_list(core: client.CoreV1Api, namespace: str) -> None:
    found = core.list_namespaced_config_map(namespace)
    core.create_namespaced_config_map(namespace, config_map("a"))
    core.patch_namespaced_config_map("a", namespace, {"data": {"k": "v"}})
    core.delete_namespaced_config_map("a", namespace)
    events = watched(core, namespace, resource_version=found.metadata.resource_version)
    assert [seen(event) for event in taken(events, 3)] == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
    ]


def test_watch_ends_in_time(core: client.CoreV1Api, namespace: str) -> None:
    events = list(watched(core, namespace, timeout_seconds=1))
    assert [seen(event) for event in events] == [("ADDED", "kube-root-ca.crt")]


def test_watch_without_a_version_begins_with_the_state(core: client.CoreV1Api, namespace: str) -> None:
    watcher = watch.Watch()
    found = []
    for event in watcher.stream(core.list_namespaced_config_map, namespace):
        found.append(seen(event))
        if len(found) == 1:
            core.create_namespaced_config_map(namespace, config_map("a"))
        else:
            watcher.stop()
    assert found == [("ADDED", "kube-root-ca.crt"), ("ADDED", "a")]


def test_selected_objects_come_and_go(core: client.CoreV1Api, namespace: str) -> None:
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("a", {"tier": "web"}))
    core.create_namespaced_config_map(namespace, config_map("b", {"tier": "db"}))
    for name, tier in (("b", "web"), ("a", "db")):
        core.patch_namespaced_config_map(name, namespace, {"metadata": {"labels": {"tier": tier}}})
    core.delete_namespaced_config_map("a", namespace)
    core.delete_namespaced_config_map("b", namespace)
    events = watched(core, namespace, label_selector="tier=web", resource_version=version)
    expected = [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a"), ("DELETED", "b")]
    assert [seen(event) for event in taken(events, 4)] == expected


def test_initial_events_end_with_a_bookmark(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("a"))
    events = watched(
        core,
        namespace,
        send_initial_events=True,
        resource_version_match="NotOlderThan",
        allow_watch_bookmarks=True,
    )
    *initial, mark = taken(events, 3)
    assert {seen(event) for event in initial} == {("ADDED", "a"), ("ADDED", "kube-root-ca.crt")}
    assert mark["type"] == "BOOKMARK"
    meta = mark["raw_object"]["metadata"]
    assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
    listed = core.list_namespaced_config_map(namespace)
    assert int(meta["resourceVersion"]) <= int(listed.metadata.resource_version)


def test_all_watchers_see_the_same_order(core: client.CoreV1Api, namespace: str) -> None:
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    writers, each = 3, 5
    watches = [watched(core, namespace, resource_version=version) for _ in range(3)]
    results: list[list[str]] = []

    def follow(events: Generator[Any]) -> None:
        found = taken(events, writers * each)
        results.append([event["object"].metadata.resource_version for event in found])

    threads = [threading.Thread(target=follow, args=(events,)) for events in watches]
    threads += [
        threading.Thread(target=write, args=(core, namespace, start * each, (start + 1) * each))
        for start in range(writers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second, third = results
    assert len(first) == writers * each
    assert first == sorted(first, key=int)
    assert first == second == third
