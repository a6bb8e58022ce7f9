"""Whatever happens to the cluster, and whenever somebody looks: a snapshot says what a fresh one would say.

The machines below send the same events to two caches. One is looked at after every event, the other only now
and then, so that many changes of the same nodes and pods are applied at once. Beside them they keep plain
dicts: what should be there.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.node import Namespace, Node
from moorage.api.pod import Pod
from moorage.api.workloads import Service
from moorage.cluster.cache import Cache, CacheError
from moorage.cluster.snapshot import Snapshot
from tests.builders import (
    HOSTNAME,
    REQUIRED,
    ZONE,
    make_namespace,
    make_node,
    make_pod,
    make_service,
    pod_term,
    port,
)
from tests.strategies import GPU, any_of, examples, one_of, present, subset

Parts = dict[str, Any]

NODE_NAMES = ("n0", "n1", "n2", "n3")
UIDS = ("u0", "u1", "u2")
NODE_NAME, UID = one_of(*NODE_NAMES), one_of(*UIDS)
LABEL_KEY = one_of(ZONE, HOSTNAME, "disk", "never")

NODE_PARTS = any_of(
    lambda labels, room, taints, images, features: {
        "labels": labels,
        "allocatable": room,
        "taints": taints,
        "images": images,
        "features": features,
    },
    ({}, {ZONE: "a"}, {ZONE: "b", "disk": "ssd"}, {ZONE: "", "disk": ""}),
    present(cpu=("4", None), pods=("10", None), **{GPU: (None, "2")}),
    subset(("a:NoSchedule", "b=1:PreferNoSchedule")),
    ([], [(["web:1", "web:latest"], 10)], [(["db:1"], 0), (["web:1"], 20)], [(["db:1"], 1), (["db:1"], 2)]),
    subset(("x", "y")),
)


def _pod_parts(labels: Parts, requests: Parts, ports: list[Parts], flags: tuple[bool, ...]) -> Parts:
    terms, terminating, important, claims = flags
    near = pod_term(ZONE, {"matchLabels": {"app": "a"}})
    return {
        "labels": labels,
        "requests": requests,
        "init_containers": [{"name": "side", "restartPolicy": "Always", "ports": ports}],
        "affinity": {"podAntiAffinity": {REQUIRED: [near]}} if terms else None,
        "terminating": terminating,
        "priority": 7 if important else None,
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}] if claims else None,
    }


POD_PARTS = any_of(
    _pod_parts,
    present(app=("a", "b", None)),
    present(cpu=(None, "100m", "2"), **{GPU: (None, "1"), "odd.org/x": (None, None, "3")}),
    subset((port(80), port(80, "UDP"), port(443, ip="127.0.0.1"))),
    [
        (False, False, False, False),
        (True, False, False, False),
        (False, True, True, True),
        (True, False, True, True),
    ],
)
PHASE = one_of("Running", "Running", "Running", "Succeeded", "Failed")


class ChangingCluster(RuleBasedStateMachine):
    """Nodes and pods come and go, are assumed, confirmed and forgotten, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.watched, self.ignored = Cache(), Cache()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.assumed: set[str] = set()
        self.seen: dict[Cache, tuple[int, int, dict[int, Any]]] = {
            self.watched: (-1, -1, {}),
            self.ignored: (-1, -1, {}),
        }

    @property
    def caches(self) -> tuple[Cache, Cache]:
        """Both caches: what happens, happens to both."""
        return self.watched, self.ignored

    @initialize()
    def some_nodes_and_pods_are_there(self) -> None:
        for name in NODE_NAMES[:3]:
            self.put_node(name, {})
        for uid in UIDS[:2]:
            self.pod_is_shown(uid, "n0", {}, "Running")
        self.reader_catches_up()

    # Nodes

    @rule(name=NODE_NAME, parts=NODE_PARTS)
    def put_node(self, name: str, parts: Parts) -> None:
        self.nodes[name] = make_node(name, **parts)
        for cache in self.caches:
            cache.put(self.nodes[name])

    @rule(name=NODE_NAME)
    def remove_node(self, name: str) -> None:
        """Often one in the middle: then the last one's row moves into its place."""
        self.nodes.pop(name, None)
        for cache in self.caches:
            cache.remove_node(name)

    # Pods

    @rule(uid=UID, name=NODE_NAME, parts=POD_PARTS, phase=PHASE)
    def pod_is_shown(self, uid: str, name: str, parts: Parts, phase: str) -> None:
        """New, changed, moved, over; on a node that is known or not; or other than it was assumed to be."""
        pod = make_pod(f"pod-{uid}", uid=uid, on=name, status={"phase": phase}, **parts)
        self.assumed.discard(uid)
        self.pods.pop(uid, None)
        if phase == "Running":
            self.pods[uid] = pod
        for cache in self.caches:
            cache.put(pod)

    @rule(uid=UID, zone=one_of(None, "x", "y"))
    def pod_is_confirmed(self, uid: str, zone: str | None) -> None:
        """The server shows a pod exactly as it is known already, or with one more label."""
        self.assumed.discard(uid)
        if uid in self.pods:
            pod = self.pods[uid]
            if zone is not None:
                labels = {**pod.labels, ZONE: zone}
                pod = self.pods[uid] = replace(pod, metadata=replace(pod.metadata, labels=labels))
            for cache in self.caches:
                cache.put_pod(pod)

    @rule(uid=UID)
    def remove_pod(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.assumed.discard(uid)
        for cache in self.caches:
            cache.remove(make_pod(f"pod-{uid}", uid=uid))

    @rule(uid=UID, name=NODE_NAME, parts=POD_PARTS)
    def pod_is_assumed(self, uid: str, name: str, parts: Parts) -> None:
        """A pod that is somewhere already cannot be; one that is only assumed there is forgotten first."""
        pod = make_pod(f"pod-{uid}", uid=uid, **parts)
        if uid in self.pods and uid not in self.assumed:
            for cache in self.caches:
                with pytest.raises(CacheError):
                    cache.assume_pod(pod, name)
            return
        for cache in self.caches:
            cache.forget_pod(pod)
            self.pods[uid] = cache.assume_pod(pod, name)
        assert self.pods[uid] == replace(pod, spec=replace(pod.spec, node_name=name))
        self.assumed.add(uid)

    @rule(uid=UID)
    def assumption_is_forgotten(self, uid: str) -> None:
        if uid in self.assumed:
            self.assumed.remove(uid)
            del self.pods[uid]
        for cache in self.caches:
            cache.forget_pod(make_pod(f"pod-{uid}", uid=uid))

    # Looking

    @rule(key=LABEL_KEY)
    def label_is_asked_for(self, key: str) -> None:
        """From then on there is a column for it."""
        for cache in self.caches:
            snapshot = cache.snapshot()
            column = [snapshot.label(key)[row] for row in range(len(snapshot))]
            assert column == [node.labels.get(key) for node in snapshot.nodes]
            self.check(cache)

    @rule()
    def search_order_is_asked_for(self) -> None:
        """From then on it is kept: `validate` compares it."""
        for cache in self.caches:
            cache.snapshot().search_order()
            self.check(cache)

    @rule()
    def reader_catches_up(self) -> None:
        self.check(self.ignored)

    @invariant()
    def the_watched_snapshot_is_what_a_fresh_one_would_be(self) -> None:
        self.check(self.watched)

    def teardown(self) -> None:
        """In the end, everything is looked at."""
        self.check(self.ignored)

    def check(self, cache: Cache) -> None:
        """All that a cache and its snapshot say is what should be there."""
        contents = cache.snapshot().contents()
        self.check_contents(contents)
        self.check_pods(cache.snapshot())
        self.check_changes(cache, contents)
        assert {uid for uid, pod in self.pods.items() if cache.is_assumed(pod)} == self.assumed
        assert {uid: cache.pod(uid) for uid in UIDS if cache.pod(uid)} == self.pods
        cache.validate()

    def check_contents(self, contents: dict[str, Parts]) -> None:
        """Pods first, then nodes, in another order than anything happened here."""
        fresh = Cache([*self.pods.values(), *self.nodes.values()]).snapshot()
        expected = fresh.contents()
        assert contents.keys() == expected.keys()
        for name, columns in contents.items():
            for column, value in columns.items():
                assert value == expected[name][column], f"{column} of {name}"

    def check_pods(self, snapshot: Snapshot) -> None:
        """Every pod on a known node is in the pod table once, in its node's row, with its own numbers."""
        table = snapshot.pods
        here = {uid: pod for uid, pod in self.pods.items() if pod.spec.node_name in self.nodes}
        assert sorted(info.pod.uid for info in table.infos) == sorted(here)
        for row, info in enumerate(table.infos):
            pod = here[info.pod.uid]
            assert info.pod == pod
            node_row = snapshot.row_of[pod.spec.node_name]
            assert snapshot.pods_of(node_row)[pod.uid] is info
            load = {name: int(table.load(name)[row]) for name in info.load.amounts}
            scoring = [info.load.scoring_cpu_milli, info.load.scoring_memory]
            assert int(table.node_rows[row]) == node_row
            assert load == info.load.amounts
            assert table.scoring_load.values[:, row].tolist() == scoring
            assert int(table.priority.values[row]) == pod.priority
            assert bool(table.holds.values[row]) == bool(info.host_ports or info.claims or info.disks)

    def check_changes(self, cache: Cache, contents: dict[str, Parts]) -> None:
        """A row that is not logged is as it was before; one only logged as relabelled, but for labels."""
        snapshot = cache.snapshot()
        position, load_position, before = self.seen[cache]
        changed = snapshot.changes.since(position)
        loads_changed = snapshot.load_changes.since(load_position)
        now = {}
        for name, columns in contents.items():
            row = snapshot.row_of[name]
            said = (name, dict(columns))
            if changed is not None and row not in changed:
                assert before[row] == said, f"row {row} changed, and that was not told"
            if loads_changed is not None and row not in loads_changed:
                for each in (before[row], said):
                    each[1].pop("classes", None)
                assert before[row] == said, f"the load of row {row} changed, and that was not told"
            now[row] = (name, dict(columns))
        self.seen[cache] = (snapshot.changes.position, snapshot.load_changes.position, now)


ITEM = any_of(
    lambda make, name, value: make(name, value),
    (
        lambda name, value: make_namespace(name, team=value),
        lambda name, value: make_service(name, {"app": value}, "red"),
        lambda name, value: make_service(name, {"app": value}, "blue"),
    ),
    ("one", "two"),
    ("a", "b"),
)


class ChangingObjects(RuleBasedStateMachine):
    """Services and namespaces, as the server shows them and as they are assumed to be."""

    def __init__(self) -> None:
        super().__init__()
        self.watched, self.ignored = Cache(), Cache()
        self.items: dict[tuple[type[Object], str, str], Object] = {}
        self.stored: dict[tuple[type[Object], str, str], Object] = {}

    @property
    def caches(self) -> tuple[Cache, Cache]:
        """Both caches: what happens, happens to both."""
        return self.watched, self.ignored

    @rule(item=ITEM)
    def put_object(self, item: Object) -> None:
        key = (type(item), item.namespace, item.name)
        self.items[key] = self.stored[key] = item
        for cache in self.caches:
            cache.put(item)

    @rule(item=ITEM)
    def remove_object(self, item: Object) -> None:
        key = (type(item), item.namespace, item.name)
        self.items.pop(key, None)
        self.stored.pop(key, None)
        for cache in self.caches:
            cache.remove(item)

    @rule(item=ITEM)
    def object_is_assumed(self, item: Object) -> None:
        key = (type(item), item.namespace, item.name)
        if key in self.items:
            self.items[key] = item
            for cache in self.caches:
                cache.objects.of(type(item)).assume(item)

    @rule(item=ITEM)
    def assumption_is_forgotten(self, item: Object) -> None:
        key = (type(item), item.namespace, item.name)
        if key in self.items:
            self.items[key] = self.stored[key]
        for cache in self.caches:
            cache.objects.of(type(item)).forget(item.namespace, item.name)

    @rule()
    def reader_catches_up(self) -> None:
        self.check(self.ignored)

    @invariant()
    def the_watched_objects_are_what_they_should_be(self) -> None:
        self.check(self.watched)

    def teardown(self) -> None:
        """In the end, everything is looked at."""
        self.check(self.ignored)

    def check(self, cache: Cache) -> None:
        """The live tables and the snapshot's replicas hold the same, and know what the server said."""
        for objects in (cache.objects, cache.snapshot().objects):
            for kind in (Namespace, Service):
                table = objects.of(kind)
                expected = {key[1:]: item for key, item in self.items.items() if key[0] is kind}
                assert {(item.namespace, item.name): item for item in table} == expected
                assert len(table) == len(expected)
                assert table.version == cache.objects.of(kind).version
                for namespace in ("", "red", "blue"):
                    within = {name: item for (place, name), item in expected.items() if place == namespace}
                    assert dict(table.within(namespace)) == within
        for (stored_kind, namespace, name), item in self.stored.items():
            assert cache.objects.of(stored_kind).stored(namespace, name) == item


@pytest.mark.slow
def test_any_sequence_of_events_leaves_what_a_fresh_snapshot_would_say() -> None:
    run_state_machine_as_test(ChangingCluster, settings=examples(120, stateful_step_count=20))


@pytest.mark.slow
def test_a_snapshots_tables_follow_the_live_ones_through_any_sequence_of_events() -> None:
    run_state_machine_as_test(ChangingObjects, settings=examples(60, stateful_step_count=20))
