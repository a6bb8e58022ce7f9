"""Which pods a node's topology manager admits: the rules by example, and against all sets of zones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage import Cache, Code, CycleState, Handle, Nodes, NodeView, Pod
from moorage.framework.interface.filter_result import Reason
from moorage.optional_plugins.numa.arguments import NumaArgs, ScoringStrategy
from moorage.optional_plugins.numa.plugin import Numa
from moorage.optional_plugins.numa.scoring import LEAST_NUMA, STRATEGIES
from tests.builders import Manifest, make_node, make_pod
from tests.optional_plugins.numa import kubelet
from tests.optional_plugins.numa.zones import (
    GPU,
    HUGE,
    Amount,
    burstable,
    guaranteed,
    limited,
    topology,
)

SMALL = {"cpu": "4", "memory": "8Gi"}
TWO = (SMALL, SMALL)
HALF: dict[str, Amount] = {"cpu": ("4", "4", "2"), "memory": "8Gi"}
POD = {"scope": "pod"}
RESTRICTED = {"policy": "restricted"}
IN_POD, IN_CONTAINER = "cannot align pod", "cannot align container"

Zones = Sequence[Mapping[str, Amount]]


def numa(cache: Cache, strategy: str = "LeastAllocated", **args: Any) -> Numa:
    handle = Handle(objects=cache.objects, snapshot=cache.latest_snapshot, pods_on=cache.pods_on)
    return Numa(NumaArgs(scoring_strategy=ScoringStrategy(type=strategy), **args), handle)


def refusals(cache: Cache, pod: Pod, **args: Any) -> list[Reason | None]:
    """The answers for all nodes; those of both forms are the same."""
    plugin, nodes = numa(cache, **args), Nodes(cache.snapshot())
    result = plugin.filter(CycleState(), pod, nodes)
    codes = [0] * len(nodes) if result.codes is None else result.codes.tolist()
    answers = [result.reasons[code - 1] if code else None for code in codes]
    assert answers == [
        plugin.filter_node(CycleState(), pod, NodeView(nodes.snapshot, row)) for row in range(len(nodes))
    ]
    return answers


def text(zones: Zones, pod: Pod, **fields: Any) -> str | None:
    """Why a node with some zones is refused."""
    cache = Cache([make_node("n"), topology("n", *zones, **fields)])
    (answer,) = refusals(cache, pod)
    return None if answer is None else answer.texts[0]


def two(first: Mapping[str, str], second: Mapping[str, str]) -> Pod:
    return guaranteed("p", first, second)


CASES: dict[str, tuple[Pod, Zones, dict[str, Any], str | None]] = {
    "one zone has room": (guaranteed("p", {"cpu": "4"}), TWO, {}, None),
    "two zones have room together": (guaranteed("p", {"cpu": "5"}), TWO, {}, IN_CONTAINER),
    "two zones have room together, as a pod": (guaranteed("p", {"cpu": "5"}), TWO, POD, IN_POD),
    "each container has a zone of its own": (two({"cpu": "4"}, {"cpu": "4"}), TWO, {}, None),
    "containers together need one zone": (two({"cpu": "4"}, {"cpu": "4"}), TWO, POD, IN_POD),
    "the first container takes the first zone that fits": (
        two({"cpu": "2"}, {"cpu": "4"}),
        ({"cpu": "4", "memory": "8Gi"}, {"cpu": "2", "memory": "8Gi"}),
        {},
        IN_CONTAINER,
    ),
    "cpu in one zone and memory in another": (
        guaranteed("p", {"cpu": "4", "memory": "4Gi"}),
        ({"cpu": "4", "memory": "2Gi"}, {"cpu": "2", "memory": "8Gi"}),
        {},
        IN_CONTAINER,
    ),
    "a fraction of a cpu is shared": (guaranteed("p", {"cpu": "4500m"}), TWO, {}, None),
    "but memory is not": (guaranteed("p", {"cpu": "4500m", "memory": "9Gi"}), TWO, {}, IN_CONTAINER),
    "cpu of a Burstable pod is shared": (
        make_pod("p", containers=[burstable({"cpu": "6", "memory": "12Gi"})]),
        TWO,
        {},
        None,
    ),
    "devices of a Burstable pod are not": (
        make_pod("p", containers=[burstable({"cpu": "6", GPU: "2"})]),
        ({**SMALL, GPU: "1"}, {**SMALL, GPU: "1"}),
        {},
        IN_CONTAINER,
    ),
    "devices of a BestEffort pod are not": (
        make_pod("p", containers=[burstable({GPU: "2"})]),
        ({**SMALL, GPU: "1"}, {**SMALL, GPU: "1"}),
        {},
        IN_CONTAINER,
    ),
    "a device without zones is anywhere": (guaranteed("p", {"cpu": "4", GPU: "2"}), TWO, {}, None),
    "memory without zones is anywhere": (
        guaranteed("p", {"cpu": "4", "memory": "9Gi"}),
        ({"cpu": "4"}, {"cpu": "4"}),
        {},
        None,
    ),
    "ephemeral storage is anywhere": (
        guaranteed("p", {"cpu": "4", "ephemeral-storage": "1Gi"}),
        ({**SMALL, "ephemeral-storage": "1"},),
        {},
        None,
    ),
    "a device in the other zone": (
        guaranteed("p", {"cpu": "4", GPU: "1"}),
        (SMALL, {"cpu": "2", "memory": "8Gi", GPU: "1"}),
        {},
        IN_CONTAINER,
    ),
    "huge pages": (
        guaranteed("p", {"cpu": "1", HUGE: "8Mi"}),
        ({**SMALL, HUGE: "4Mi"}, {**SMALL, HUGE: "6Mi"}),
        {},
        IN_CONTAINER,
    ),
    "init containers run before the others": (
        make_pod(
            "p",
            containers=[limited({"cpu": "4", "memory": "1Gi"})],
            init_containers=[limited({"cpu": "4", "memory": "1Gi"}, "init")],
        ),
        (SMALL,),
        {},
        None,
    ),
    "an init container that is too large": (
        make_pod(
            "p",
            containers=[limited({"cpu": "1", "memory": "1Gi"})],
            init_containers=[limited({"cpu": "5", "memory": "1Gi"}, "init")],
        ),
        TWO,
        {},
        "cannot align init container",
    ),
    "sidecars run on": (
        make_pod(
            "p",
            containers=[limited({"cpu": "3", "memory": "1Gi"})],
            init_containers=[limited({"cpu": "2", "memory": "1Gi"}, "side", restartPolicy="Always")],
        ),
        (SMALL,),
        {},
        IN_CONTAINER,
    ),
    "a sidecar that is too large": (
        make_pod(
            "p",
            containers=[limited({"cpu": "1", "memory": "1Gi"})],
            init_containers=[limited({"cpu": "5", "memory": "1Gi"}, "side", restartPolicy="Always")],
        ),
        TWO,
        {},
        "cannot align sidecar container",
    ),
    "resources of the pod as a whole are not exclusive": (
        make_pod(
            "p",
            containers=[limited({"cpu": "5", "memory": "1Gi"})],
            resources={"requests": {"cpu": "5", "memory": "1Gi"}, "limits": {"cpu": "5", "memory": "1Gi"}},
        ),
        TWO,
        {},
        None,
    ),
    "best-effort aligns if it can": (guaranteed("p", {"cpu": "5"}), TWO, {"policy": "best-effort"}, None),
    "none does not align": (guaranteed("p", {"cpu": "5"}), TWO, {"policy": "none"}, None),
    "restricted: as many zones as an empty node would need": (
        guaranteed("p", {"cpu": "5", "memory": "9Gi"}),
        TWO,
        RESTRICTED,
        None,
    ),
    "restricted: one zone would be enough if it were empty": (
        guaranteed("p", {"cpu": "3"}),
        (HALF, HALF),
        RESTRICTED,
        IN_CONTAINER,
    ),
    "restricted: resources that need different numbers of zones": (
        guaranteed("p", {"cpu": "5", "memory": "1Gi"}),
        TWO,
        RESTRICTED,
        IN_CONTAINER,
    ),
    "restricted: a pod as a whole": (
        two({"cpu": "3", "memory": "5Gi"}, {"cpu": "3", "memory": "5Gi"}),
        TWO,
        {**RESTRICTED, **POD},
        None,
    ),
    "restricted: more than the node has": (guaranteed("p", {"cpu": "9"}), TWO, RESTRICTED, IN_CONTAINER),
    "an unknown policy is none": (guaranteed("p", {"cpu": "5"}), TWO, {"policy": "strict"}, None),
    "no zones": (guaranteed("p", {"cpu": "5"}), (), {}, None),
}


@pytest.mark.parametrize(("pod", "zones", "fields", "expected"), CASES.values(), ids=CASES.keys())
def test_the_rules(pod: Pod, zones: Zones, fields: dict[str, Any], expected: str | None) -> None:
    assert text(zones, pod, **fields) == expected


def test_a_node_without_an_object_takes_any_pod() -> None:
    assert refusals(Cache([make_node("n")]), guaranteed("p", {"cpu": "99"})) == [None]


def test_preemption_cannot_help_where_an_empty_node_could_not_align_the_pod() -> None:
    full: dict[str, Amount] = {"cpu": ("4", "4", "0"), "memory": "8Gi"}
    cache = Cache([make_node("n"), topology("n", full, full)])
    codes = [refusals(cache, guaranteed("p", {"cpu": cpu}))[0] for cpu in ("4", "5")]
    assert [each and each.code for each in codes] == [Code.UNSCHEDULABLE, Code.UNRESOLVABLE]


def test_more_sets_of_zones_than_are_tried_are_left_to_the_kubelet() -> None:
    many = [{"cpu": "1", "memory": "1Gi"}] * 16
    assert text(many, guaranteed("p", {"cpu": "8", "memory": "8Gi"}), **RESTRICTED) is None


# Against all sets of zones

RESOURCES = ("cpu", "memory", HUGE, GPU)
KINDS = st.sampled_from(["app", "init", "sidecar"])
AMOUNT = st.integers(0, 6)


@st.composite
def machines(draw: st.DrawFn) -> kubelet.Machine:
    count = draw(st.integers(1, 3))
    resources = {}
    for name in draw(st.sets(st.sampled_from(RESOURCES))):
        zones = list(range(count))
        if name == GPU:
            zones = [zone for zone in zones if draw(st.booleans())]
        columns: list[dict[int, int]] = [{}, {}, {}]
        for zone in zones:
            available, more, most = draw(AMOUNT), draw(st.integers(0, 2)), draw(st.integers(0, 1))
            for column, amount in zip(
                columns, (available + more + most, available + more, available), strict=True
            ):
                column[zone] = amount
        if zones:
            resources[name] = kubelet.Resource(*columns)
    policy = draw(st.sampled_from(["single-numa-node", "restricted", "best-effort"]))
    return kubelet.Machine(policy, draw(st.sampled_from(["pod", "container"])), count, resources)


CONTAINERS = st.lists(
    st.builds(kubelet.Container, KINDS, st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 8))),
    min_size=1,
    max_size=3,
)


def manifests(containers: Sequence[kubelet.Container]) -> tuple[list[Manifest], list[Manifest]]:
    """Init containers and containers, with all that makes the pod Guaranteed."""
    of_init: list[Manifest] = []
    of_pod: list[Manifest] = []
    for number, each in enumerate(containers):
        requests = {"cpu": "500m", "memory": "1", **{name: str(need) for name, need in each.needs.items()}}
        policy = {"restartPolicy": "Always"} if each.kind == "sidecar" else {}
        made = limited(requests, f"c{number}", **policy)
        (of_pod if each.kind == "app" else of_init).append(made)
    return of_init, of_pod


def in_order(containers: Sequence[kubelet.Container]) -> list[kubelet.Container]:
    """As pods have them: those of the pod last; without memory, a container requests one byte."""
    full = [each._replace(needs={"memory": 1, **each.needs}) for each in containers]
    return [each for each in full if each.kind != "app"] + [each for each in full if each.kind == "app"]


def object_of(name: str, machine: kubelet.Machine) -> Any:
    def written(zone: int) -> dict[str, Amount]:
        return {
            name: (str(of.capacity[zone]), str(of.allocatable[zone]), str(of.available[zone]))
            for name, of in machine.resources.items()
            if zone in of.available
        }

    zones = map(written, range(machine.zone_count))
    return topology(name, *zones, policy=machine.policy, scope=machine.scope)


@given(st.lists(machines(), min_size=1, max_size=4), CONTAINERS)
@settings(max_examples=150)
def test_the_kubelet_admits_where_the_filter_passes(
    machines: list[kubelet.Machine], containers: list[kubelet.Container]
) -> None:
    if all(each.kind != "app" for each in containers):
        containers = [*containers, kubelet.Container("app", {})]
    of_init, of_pod = manifests(containers)
    pod = make_pod("p", containers=of_pod, init_containers=of_init)
    names = [f"n{number}" for number in range(len(machines))]
    cache = Cache([make_node(name) for name in names])
    for name, machine in zip(names, machines, strict=True):
        cache.objects.put(object_of(name, machine))
    cache.put_node(make_node("without"))
    answers = [None if each is None else each.texts[0] for each in refusals(cache, pod)]
    ordered = in_order(containers)
    assert answers == [kubelet.refusal(machine, ordered) for machine in machines] + [None]
    for strategy in STRATEGIES:
        scores_are_equal(cache, pod, strategy)


def scores_are_equal(cache: Cache, pod: Pod, strategy: str) -> None:
    """Both forms of scoring agree, within bounds."""
    plugin, nodes = numa(cache, strategy), Nodes(cache.snapshot())
    scores = plugin.score(CycleState(), pod, nodes)
    views = [NodeView(nodes.snapshot, row) for row in range(len(nodes))]
    assert scores.tolist() == [plugin.score_node(CycleState(), pod, view) for view in views]
    assert scores.dtype == np.int64
    assert all(0 <= score <= 100 for score in scores.tolist())
    assert scores[-1] == 0, strategy
    assert strategy in STRATEGIES
    assert LEAST_NUMA in STRATEGIES
