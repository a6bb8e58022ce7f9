"""Which pods an object accounts for, and what is left in zones for others."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage import Cache, CycleState, HypotheticalPods, Nodes, Pod
from moorage.api.decode import convert
from moorage.api.pod import PodStatus
from moorage.optional_plugins.numa.fingerprint import fingerprint, pod_hash, xxh64
from moorage.optional_plugins.numa.topology import NodeResourceTopology
from tests.builders import make_node, make_pod
from tests.optional_plugins.numa.test_alignment import numa, refusals
from tests.optional_plugins.numa.zones import GPU, STARTED, Amount, burstable, guaranteed, topology

PRINT = "nodeTopologyPodsFingerprint"
METHOD = "nodeTopologyPodsFingerprintMethod"
HASHES = {
    b"": 0xEF46DB3751D8E999,
    b"abc": 0x44BC2CF5AD770999,
    b"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}
PODS_OF_AN_AGENT = (
    ("numaresources", "numaresources-controller-manager-68b4594b44-c8kl7"),
    ("kube-system", "dns"),
)


@pytest.mark.parametrize(("data", "expected"), HASHES.items())
def test_the_hash_is_xxh64(data: bytes, expected: int) -> None:
    assert xxh64(data) == expected


def test_a_fingerprint_does_not_depend_on_the_order() -> None:
    hashes = [pod_hash(*each) for each in PODS_OF_AN_AGENT]
    assert fingerprint(hashes) == fingerprint(hashes[::-1])
    assert fingerprint(hashes) != fingerprint(hashes[:1])
    assert fingerprint([]) == "pfp0v001ef46db3751d8e999"


def of(*names: str) -> str:
    """The fingerprint of pods of the namespace default."""
    return fingerprint(pod_hash("default", name) for name in names)


def on_node(name: str, cpu: str = "2", **fields: Any) -> Pod:
    return guaranteed(name, {"cpu": cpu}, on="n", **fields)


def left(
    cpu: str, policy: str = "single-numa-node", memory: str = "64Gi", **attributes: str
) -> NodeResourceTopology:
    """An object with two zones of four cpus and 64Gi, of which so much is left in each."""
    zone: dict[str, Amount] = {"cpu": ("4", "4", cpu), "memory": ("64Gi", "64Gi", memory)}
    return topology("n", zone, zone, policy=policy, **attributes)


def largest(cache: Cache, plugin: Any) -> int:
    """How many cpus the largest pod may have that is let in."""
    nodes = Nodes(cache.snapshot())
    for cpu in range(4, 0, -1):
        result = plugin.filter(CycleState(), guaranteed(f"new-{cpu}", {"cpu": str(cpu)}), nodes)
        if result.codes is None or not result.codes.any():
            return cpu
    return 0


def started(pod: Pod) -> Pod:
    return replace(pod, status=convert(STARTED, PodStatus))


RUNNING: dict[str, Any] = {"status": STARTED}
AT_FIRST = {
    "the kubelet has started it": ([on_node("a", **RUNNING)], left("3"), 3),
    "it is being bound": ([on_node("a")], left("3"), 1),
    "it is being bound, but as much is used": ([on_node("a")], left("3", memory="63Gi"), 3),
    "two are being bound, and one of them is used": (
        [on_node("a"), on_node("b", "1")],
        left("3", memory="63Gi"),
        2,
    ),
    "the fingerprint has it, though it is not known to be started": (
        [on_node("a")],
        left("3", **{PRINT: of("a")}),
        3,
    ),
    "the fingerprint has not": ([on_node("a", **RUNNING)], left("3", **{PRINT: of()}), 1),
    "the fingerprint has one of two that are being bound": (
        [on_node("a", "1"), on_node("b", "2")],
        left("4", **{PRINT: of("a")}),
        2,
    ),
    "the fingerprint has another pod": ([on_node("a", "1")], left("4", **{PRINT: of("b")}), 3),
    "the fingerprint has exclusive resources only": (
        [on_node("a", "1"), make_pod("b", uid="b", on="n", requests={"cpu": "1"})],
        left("4", **{PRINT: of("a"), METHOD: "with-exclusive-resources"}),
        4,
    ),
    "the fingerprint is of a version that is not known": (
        [on_node("a", "1", **RUNNING)],
        left("4", **{PRINT: "pfp0v002ef46db3751d8e999"}),
        4,
    ),
    "it is Burstable": ([make_pod("a", uid="a", on="n", requests={"cpu": "2"})], left("3"), 3),
    "it is being deleted, and not in the fingerprint any more": (
        [on_node("a", "1", terminating=True, **RUNNING), on_node("b", "1", **RUNNING)],
        left("4", **{PRINT: of("b")}),
        3,
    ),
}


@pytest.mark.parametrize(("pods", "obj", "expected"), AT_FIRST.values(), ids=AT_FIRST.keys())
def test_what_is_left_at_first(pods: Sequence[Pod], obj: NodeResourceTopology, expected: int) -> None:
    cache = Cache([make_node("n", allocatable={"cpu": "8", "memory": "128Gi", "pods": "10"}), *pods, obj])
    assert largest(cache, numa(cache)) == expected


def test_the_old_annotation_is_a_fingerprint_too() -> None:
    obj = left("3")
    annotated = replace(obj.metadata, annotations={"topology.node.k8s.io/fingerprint": of("a")})
    cache = Cache([make_node("n"), on_node("a"), replace(obj, metadata=annotated)])
    assert largest(cache, numa(cache)) == 3


def test_a_pod_is_subtracted_until_an_object_arrives_after_its_start() -> None:
    cache = Cache([make_node("n"), left("4")])
    plugin = numa(cache)
    assert largest(cache, plugin) == 4
    pod = cache.assume_pod(guaranteed("a", {"cpu": "3"}), "n")
    assert largest(cache, plugin) == 1
    cache.objects.put(left("4"))
    assert largest(cache, plugin) == 1, "the kubelet has not started it yet"
    cache.put_pod(started(pod))
    assert largest(cache, plugin) == 1, "no object has arrived since"
    cache.objects.put(left("2"))
    assert largest(cache, plugin) == 2


def test_an_object_is_looked_at_when_it_arrives() -> None:
    """Between two pods, one is bound and started, and its object arrives: no snapshot has seen it before."""
    cache = Cache([make_node("n"), left("4")])
    plugin = numa(cache)
    assert largest(cache, plugin) == 4
    cache.put_pod(started(cache.assume_pod(guaranteed("a", {"cpu": "3"}), "n")))
    cache.objects.put(left("3"))
    assert largest(cache, plugin) == 3


def test_a_node_whose_first_object_arrives_later() -> None:
    """The object arrives while the pod is not started yet; the next pod is decided about after its start."""
    cache = Cache([make_node("n")])
    plugin = numa(cache)
    assert largest(cache, plugin) == 4
    pod = cache.assume_pod(guaranteed("a", {"cpu": "3"}), "n")
    cache.objects.put(left("4"))
    cache.put_pod(started(pod))
    assert largest(cache, plugin) == 1


def test_a_pod_that_is_gone_is_not_subtracted() -> None:
    cache = Cache([make_node("n"), left("4")])
    plugin = numa(cache)
    assert largest(cache, plugin) == 4
    pod = cache.assume_pod(guaranteed("a", {"cpu": "3"}), "n")
    assert largest(cache, plugin) == 1
    cache.forget_pod(pod)
    assert largest(cache, plugin) == 4


def test_pods_of_an_earlier_fingerprint_stay_accounted_for() -> None:
    cache = Cache([make_node("n"), on_node("a", "1"), left("3", **{PRINT: of("a")})])
    plugin = numa(cache)
    assert largest(cache, plugin) == 3
    cache.put_pod(on_node("b", "2"))
    cache.objects.put(left("2", **{PRINT: of("a", "b", "elsewhere")}))
    assert largest(cache, plugin) == 0, "b is subtracted again: the fingerprint has a pod that is not known"
    cache.put_pod(on_node("elsewhere", "1"))
    assert largest(cache, plugin) == 2, "now it is known"


def test_a_removed_object_is_forgotten() -> None:
    cache = Cache([make_node("n"), on_node("a", "1"), left("0")])
    plugin = numa(cache)
    assert largest(cache, plugin) == 0
    cache.objects.remove(left("0"))
    assert largest(cache, plugin) == 4


def test_nodes_with_reservations_are_discarded() -> None:
    cache = Cache([make_node("n"), make_node("without"), left("4", policy="none")])
    pod = guaranteed("p", {"cpu": "1"})
    assert refusals(cache, pod, discard_reserved_nodes=True) == [None, None]
    cache.assume_pod(guaranteed("a", {"cpu": "1"}), "n")
    answers = refusals(cache, pod, discard_reserved_nodes=True)
    assert [each and each.texts for each in answers] == [("invalid node topology data",), None]


# Preemption

VICTIMS = {
    "all pods of the node go": (("4", "4"), ["a", "b"], 4),
    "one of two goes, which may be in any zone": (("2", "0"), ["b"], 2),
    "the one that stays is small": (("3", "0"), ["b"], 3),
    "none goes": (("2", "1"), [], 2),
}


@pytest.mark.parametrize(("left", "victims", "expected"), VICTIMS.values(), ids=VICTIMS.keys())
def test_what_is_left_without_some_pods(left: tuple[str, str], victims: list[str], expected: int) -> None:
    """Two zones of four cpus; a has one or two of them, and b the others."""
    first, second = left
    used = 8 - int(first) - int(second)
    small = min(4 - int(first), 2) if used else 1
    pods = [on_node("a", str(small), **RUNNING), on_node("b", str(max(used - small, 1)), **RUNNING)]
    zones: list[dict[str, Amount]] = [{"cpu": ("4", "4", each), "memory": "64Gi"} for each in left]
    cache = Cache([make_node("n"), *pods, topology("n", *zones)])
    nodes = Nodes(cache.snapshot())
    table = nodes.snapshot.pods
    rows = np.array(table.rows_of(victims), np.intp)
    dry = HypotheticalPods(nodes.snapshot, 1, np.zeros(len(rows), np.intp), rows)
    view = Nodes(nodes.snapshot, np.zeros(1, np.intp), dry)
    plugin = numa(cache)
    lets_in = [
        cpu
        for cpu in range(1, 5)
        if plugin.filter(CycleState(), guaranteed("p", {"cpu": str(cpu)}), view).codes is None
    ]
    assert max(lets_in) == expected
    (one,) = view
    assert lets_in == [
        cpu
        for cpu in range(1, 5)
        if plugin.filter_node(CycleState(), guaranteed("p", {"cpu": str(cpu)}), one) is None
    ]


# A kubelet with its agent


class Machine:
    """A kubelet that gives each pod one zone, and an agent that writes what is left there."""

    def __init__(self, zones: int, cpus: int, prints: bool) -> None:
        self.left = [cpus] * zones
        self.cpus = cpus
        self.prints = prints
        self.placed: dict[str, tuple[int, int]] = {}

    def start(self, pod: Pod) -> None:
        """Admit a pod; the kubelet must not have to reject it."""
        cpus = int(pod.spec.containers[0].resources.requests["cpu"]) // 10**9
        zone = next((zone for zone, left in enumerate(self.left) if left >= cpus), None)
        assert zone is not None, f"{pod.name} has no zone: {self.left} are left of it"
        self.left[zone] -= cpus
        self.placed[pod.uid] = (zone, cpus)

    def stop(self, pod: Pod) -> None:
        zone, cpus = self.placed.pop(pod.uid, (0, 0))
        self.left[zone] += cpus

    def report(self) -> NodeResourceTopology:
        """What the agent sees now."""
        total = str(self.cpus)
        zones: list[dict[str, Amount]] = [{"cpu": (total, total, str(left))} for left in self.left]
        prints = {PRINT: of(*self.placed)} if self.prints else {}
        return topology("n", *zones, **prints)


EVENTS = ("arrives", "starts", "is seen to start", "reports", "arrives late", "ends")


@given(st.integers(1, 3), st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_the_kubelet_rejects_no_pod(zones: int, prints: bool, seed: int) -> None:
    """Whatever the order in which pods come and go, are started, reported and seen to be started.

    With fingerprints, reports may be as old as they like.
    """
    rng = random.Random(seed)
    machine = Machine(zones, 4, prints)
    cache = Cache([make_node("n", allocatable={"cpu": "99", "memory": "999Gi", "pods": "99"})])
    cache.objects.put(machine.report())
    plugin = numa(cache)
    bound: dict[str, Pod] = {}
    reports: list[NodeResourceTopology] = []
    for number in range(60):
        event = rng.choice(EVENTS)
        if event == "arrives":
            pod = guaranteed(f"p{number}", {"cpu": str(rng.randint(1, 3))})
            codes = plugin.filter(CycleState(), pod, Nodes(cache.snapshot())).codes
            if codes is None:
                bound[pod.uid] = cache.assume_pod(pod, "n")
        elif event == "starts":
            for pod in bound.values():
                if pod.uid not in machine.placed and rng.random() < 0.5:
                    machine.start(pod)
        elif event == "is seen to start":
            for uid in machine.placed.keys() & bound.keys():
                cache.put_pod(started(bound[uid]))
        elif event == "reports":
            reports.append(machine.report())
            if not prints:
                cache.objects.put(reports.pop())
        elif event == "arrives late" and reports:
            cache.objects.put(reports.pop(0))
        elif event == "ends" and bound:
            pod = bound.pop(rng.choice(sorted(bound)))
            machine.stop(pod)
            cache.remove_pod(pod)
    for pod in bound.values():
        if pod.uid not in machine.placed:
            machine.start(pod)


def test_devices_that_no_zone_lists_are_not_exclusive() -> None:
    obj = left("3", **{PRINT: of(), METHOD: "with-exclusive-resources"})
    pod = make_pod("a", uid="a", on="n", containers=[burstable({GPU: "1"})], status=STARTED)
    cache = Cache([make_node("n"), pod, obj])
    assert largest(cache, numa(cache)) == 3
