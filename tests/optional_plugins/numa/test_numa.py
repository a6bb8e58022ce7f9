"""Numa in a profile: scores, arguments, events, preemption, groups, and the examples of its page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from moorage import (
    Action,
    Cache,
    CycleState,
    Engine,
    EvictPods,
    Handle,
    Nodes,
    Object,
    Pod,
    PodGroupInfo,
    RegistryError,
    default_registry,
    load_config,
)
from moorage.api.decode import convert
from moorage.api.pod_groups import PodGroup, key_of
from moorage.emulation.kubernetes_version import V1_37
from moorage.engine.group_choices import RandomChoices
from moorage.engine.group_cycle import GroupCycle
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.framework.runtime.framework import Framework
from moorage.optional_plugins.numa.plugin import NodeResourceTopologyMatch, Numa
from moorage.optional_plugins.numa.topology import NODE_RESOURCE_TOPOLOGY, NodeResourceTopology
from moorage.queue.cluster_events import ClusterEvent
from moorage.testing import check_plugin
from moorage.testing.clusters import Cluster
from tests.builders import make_node, make_pod, make_profile
from tests.optional_plugins.numa.test_accounting import left, on_node, started
from tests.optional_plugins.numa.test_alignment import numa
from tests.optional_plugins.numa.zones import (
    GPU,
    STARTED,
    Amount,
    burstable,
    guaranteed,
    topology,
    topology_manifest,
    zone,
)
from tests.optional_plugins.shown_examples import ROOT, check_examples
from tests.plugins.requeueing import what_happened

# Scores

Zones = list[Mapping[str, Amount]]
FOUR: Mapping[str, Amount] = {"cpu": "4", "memory": "4Gi"}
EIGHT: Mapping[str, Amount] = {"cpu": "8", "memory": "8Gi"}
PAIR = guaranteed("p", {"cpu": "2", "memory": "2Gi"}, {"cpu": "1", "memory": "1Gi"})
ONE = guaranteed("p", {"cpu": "2", "memory": "1Gi"})
SCORES: dict[str, tuple[str, Pod, Zones, dict[str, Any], int]] = {
    "what would be left of the fullest zone": ("LeastAllocated", ONE, [FOUR, EIGHT], {}, (50 + 75) // 2),
    "what would be used of the emptiest zone": ("MostAllocated", ONE, [FOUR, EIGHT], {}, (25 + 12) // 2),
    "by weight": ("LeastAllocated", ONE, [FOUR], {"weights": {"cpu": 3}}, (50 * 3 + 75) // 4),
    "zones without room do not count": ("LeastAllocated", ONE, [{"cpu": "1"}, FOUR], {}, 62),
    "the mean of containers": ("LeastAllocated", PAIR, [FOUR], {}, (50 + 75) // 2),
    "a pod as a whole": ("LeastAllocated", PAIR, [FOUR], {"scope": "pod"}, 25),
    "the more balanced, the better": ("BalancedAllocation", ONE, [FOUR], {}, int((1 - 0.03125) * 100)),
    "a zone without room is not balanced": (
        "BalancedAllocation",
        ONE,
        [{"cpu": "1", "memory": "4Gi"}],
        {},
        0,
    ),
    "another policy has no score": ("LeastAllocated", ONE, [FOUR], {"policy": "restricted"}, 0),
    "one of eight zones, the closest": ("LeastNUMANodes", ONE, [FOUR, FOUR], {}, 100 - 12 + 6),
    "two of eight zones": (
        "LeastNUMANodes",
        guaranteed("p", {"cpu": "6"}),
        [FOUR, FOUR],
        {"policy": "best-effort"},
        100 - 24 + 6,
    ),
    "the container with the most zones counts": (
        "LeastNUMANodes",
        guaranteed("p", {"cpu": "1"}, {"cpu": "6"}),
        [FOUR, FOUR],
        {"policy": "none"},
        100 - 24 + 6,
    ),
    "no room": ("LeastNUMANodes", guaranteed("p", {"cpu": "9"}), [FOUR, FOUR], {"policy": "none"}, 0),
    "of two zones at most": (
        "LeastNUMANodes",
        ONE,
        [FOUR, FOUR],
        {"topologyManagerMaxNUMANodes": "2"},
        100 - 50 + 25,
    ),
    "more sets of zones than are tried": (
        "LeastNUMANodes",
        guaranteed("p", {"cpu": "8"}),
        [{"cpu": "1", "memory": "1Gi"}] * 16,
        {"policy": "none"},
        0,
    ),
    "nothing that zones list": (
        "LeastNUMANodes",
        guaranteed("p", {"cpu": "1"}),
        [{GPU: "1"}],
        {},
        100,
    ),
}


@pytest.mark.parametrize(
    ("strategy", "pod", "zones", "fields", "expected"), SCORES.values(), ids=SCORES.keys()
)
def test_the_score(strategy: str, pod: Pod, zones: Zones, fields: dict[str, Any], expected: int) -> None:
    given = {key: value for key, value in fields.items() if key != "weights"}
    cache = Cache([make_node("n"), topology("n", *zones, **given)])
    resources = [{"name": name, "weight": weight} for name, weight in fields.get("weights", {}).items()]
    plugin = made({"scoringStrategy": {"type": strategy, "resources": resources}}, cache)
    nodes = Nodes(cache.snapshot())
    assert plugin.score(CycleState(), pod, nodes).tolist() == [expected]
    (view,) = nodes
    assert plugin.score_node(CycleState(), pod, view) == expected


def test_zones_that_are_closer_together_are_better() -> None:
    """Zones 0 and 2 have room for the pod, but 0 and 1 are closer."""
    near, far = {0: 10, 1: 11, 2: 20}, {0: 20, 1: 20, 2: 10}
    room = [("4", near), ("1", {0: 11, 1: 10, 2: 20}), ("4", far)]
    zones = [zone(number, {"cpu": cpu}, costs) for number, (cpu, costs) in enumerate(room)]
    cache = Cache([make_node("n")])
    manifest = topology_manifest("n", zones, "best-effort")
    cache.objects.put(convert(manifest, type(topology("n"))))
    nodes = Nodes(cache.snapshot())
    plugin = numa(cache, "LeastNUMANodes")
    scores = [int(plugin.score(CycleState(), guaranteed("p", {"cpu": cpu}), nodes)[0]) for cpu in ("5", "8")]
    assert scores == [100 - 24 + 6, 100 - 24]


# Arguments


def made(args: Mapping[str, Any], cache: Cache | None = None, name: str = "Numa") -> Any:
    cache = cache or Cache()
    handle = Handle(cache.objects, snapshot=cache.latest_snapshot, pods_on=cache.pods_on)
    return default_registry().make(name, args, handle)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "strategy": (
        {"scoringStrategy": {"type": "Most"}},
        "args: scoringStrategy.type: expected one of MostAllocated, BalancedAllocation, LeastAllocated, "
        "LeastNUMANodes, got 'Most'",
    ),
    "weight": (
        {"scoringStrategy": {"resources": [{"name": "cpu", "weight": -1}]}},
        "args: scoringStrategy.resources[0].weight: expected 0 to 1000000, got -1",
    ),
    "resource": (
        {"scoringStrategy": {"resources": [{"weight": 2}]}},
        "args: scoringStrategy.resources[0].name: required; write the name of a resource, such as cpu",
    ),
    "period": (
        {"cacheResyncPeriodSeconds": -5},
        "args: cacheResyncPeriodSeconds: expected 0 or more, got -5",
    ),
    "method": (
        {"cache": {"resyncMethod": "Some"}},
        "args: cache.resyncMethod: expected one of Autodetect, All, OnlyExclusiveResources, got 'Some'",
    ),
    "unknown": ({"cache": {"method": "All"}}, "args.cache: object contains unknown field `method`"),
    "type": ({"discardReservedNodes": "yes"}, 'args.discardReservedNodes: expected true or false, got "yes"'),
}


@pytest.mark.parametrize(("args", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_arguments_are_refused(args: dict[str, Any], message: str) -> None:
    with pytest.raises(RegistryError) as error:
        made(args)
    assert str(error.value) == f"plugin Numa: {message}"


def test_arguments_of_scheduler_plugins_are_taken_under_its_name() -> None:
    args = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "NodeResourceTopologyMatchArgs",
        "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 2}]},
        "cacheResyncPeriodSeconds": 5,
        "discardReservedNodes": False,
        "cache": {"foreignPodsDetect": "None", "informerMode": "Shared", "resyncScope": "OnlyResources"},
        "preemptionMode": "Enabled",
    }
    assert isinstance(made(args, name="NodeResourceTopologyMatch"), Numa)


# Events

SHORT = guaranteed("waits", {"cpu": "3"})
EVENTS: dict[str, tuple[Object | None, Object | None, bool]] = {
    "a node is new": (None, make_node("new"), True),
    "more is left of a zone": (left("1"), left("3"), True),
    "not enough is left": (left("1"), left("2"), False),
    "an object of another policy": (None, left("1", policy="none"), True),
    "an object is gone": (left("1"), None, True),
    "a pod is deleted that no object accounts for": (on_node("b"), None, True),
    "a pod is deleted that the object accounts for": (on_node("a", status=STARTED), None, False),
    "a pod is deleted that holds nothing of zones": (make_pod("c", uid="c", on="n"), None, False),
    "a pod that was waiting is deleted": (guaranteed("d", {"cpu": "1"}), None, False),
    "another pod is scaled down": (on_node("b", "2"), on_node("b", "1"), False),
    "the pod itself is scaled down": (SHORT, guaranteed("waits", {"cpu": "2"}), True),
}


@pytest.mark.parametrize(("old", "new", "helps"), EVENTS.values(), ids=EVENTS.keys())
def test_an_event_helps(old: Object | None, new: Object | None, helps: bool) -> None:
    pods = [on_node("a", status=STARTED), on_node("b")]
    cache = Cache([make_node("n"), *pods, left("1")])
    plugin = made({}, cache)
    plugin.filter(CycleState(), SHORT, Nodes(cache.snapshot()))
    interests = [
        each for each in plugin.events() if any(each.event.covers(event) for event in happened(old, new))
    ]
    assert any(each.hint is None or each.hint(SHORT, old, new) for each in interests) is helps


def happened(old: Object | None, new: Object | None) -> tuple[ClusterEvent, ...]:
    """The events that a change means."""
    if not isinstance(old or new, NodeResourceTopology):
        return what_happened(old, new)
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
    return (ClusterEvent(NODE_RESOURCE_TOPOLOGY.resource, action),)


# Preemption and groups


def framework(cache: Cache, *plugins: str) -> Framework:
    handle = Handle(
        cache.objects,
        random=Random(1),
        snapshot=cache.latest_snapshot,
        pods_on=cache.pods_on,
        pod_groups=cache.pod_groups,
        version=V1_37.with_gates({"GenericWorkload": True}),
    )
    return Framework(make_profile("NodeResourcesFit", *plugins), default_registry(), handle)


@pytest.mark.parametrize(("stays", "evicts"), [(1, True), (3, False)])
def test_pods_are_evicted_where_that_is_certain_to_help(stays: int, evicts: bool) -> None:
    """Three of four cpus of each zone are used; what a pod of higher priority uses may be in either."""
    full: Mapping[str, Amount] = {"cpu": ("4", "4", "1"), "memory": "64Gi"}
    pods = [
        on_node("low", str(6 - stays), priority=1, status=STARTED),
        on_node("high", str(stays), priority=100, status=STARTED),
    ]
    room = {"cpu": "9", "memory": "128Gi", "pods": "10"}
    cache = Cache([make_node("n", allocatable=room), *pods, topology("n", full, full)])
    pod = guaranteed("new", {"cpu": "3"}, priority=50)
    decision = Engine(seed=0).decide(framework(cache, "Numa", "DefaultPreemption"), pod, cache.snapshot())
    assert decision.node is None
    assert decision.post_filter is not None
    victims = [
        victim.name
        for effect in decision.post_filter.effects
        if isinstance(effect, EvictPods)
        for victim in effect.victims
    ]
    assert victims == (["low"] if evicts else [])


def test_members_of_a_group_are_aligned_one_after_another() -> None:
    """Two fit on a node only if they get one zone each, which is not known: the second goes elsewhere."""
    nodes = [make_node(name, allocatable={"cpu": "8", "memory": "99Gi", "pods": "9"}) for name in "ab"]
    zones: Mapping[str, Amount] = {"cpu": "4", "memory": "64Gi"}
    cache = Cache([*nodes, *(topology(name, zones, zones) for name in "ab")])
    members = {"scheduling_group": {"podGroupName": "g"}}
    for count, fits in ((2, True), (3, False)):
        pods = tuple(guaranteed(f"g-{number}", {"cpu": "3"}, **members) for number in range(count))
        cycle = GroupCycle(
            Engine(seed=0),
            framework(cache, "GangScheduling", "Numa"),
            cache,
            RandomChoices(Random(0)),
            has_placements=False,
        )
        wanted = gang(count)
        cache.put(wanted)
        decision = run_without_suspending(cycle.decide(PodGroupInfo(key_of(wanted), wanted, pods)))
        nodes_of = sorted(each.node_name for each in decision.result.members if each.node_name)
        assert (decision.result.status.is_success, nodes_of) == (fits, ["a", "b"])
        cache.validate()


def gang(count: int) -> PodGroup:
    policy = {"schedulingPolicy": {"gang": {"minCount": count}}}
    return convert({"metadata": {"name": "g", "namespace": "default"}, "spec": policy}, PodGroup)


# The whole


def test_pods_that_nothing_is_pinned_for_are_skipped() -> None:
    cache = Cache([make_node("n"), topology("n", FOUR)])
    plugin = made({}, cache)
    shared = make_pod("p", containers=[burstable({"cpu": "1"})])
    depends_on = plugin.depends_on(shared, cache.objects)
    assert depends_on is not None
    assert depends_on.node_objects == ()
    assert str(plugin.pre_filter(CycleState(), shared, Nodes(cache.snapshot()))) != "None"


def checked() -> list[Cluster]:
    nodes = [make_node(f"n{number}", allocatable={"cpu": "8", "memory": "64Gi"}) for number in range(3)]
    objects = [
        topology("n0", FOUR, EIGHT, scope="pod"),
        topology("n1", FOUR, FOUR, policy="restricted"),
        topology("n2", {**FOUR, GPU: "1"}, FOUR),
    ]
    pods = [started(guaranteed("a", {"cpu": "1"}, on="n0")), guaranteed("b", {"cpu": "1"}, on="n1")]
    pending = [guaranteed(f"p{cpu}", {"cpu": str(cpu), GPU: "1"}) for cpu in (1, 3, 5)]
    more = [make_pod("q", containers=[burstable({GPU: "2"})]), PAIR]
    return [Cluster("zones", (*nodes, *objects, *pods), (*pending, *more))]


@pytest.mark.parametrize("strategy", ["LeastNUMANodes", "MostAllocated"])
def test_keeps_the_rules_of_plugins(strategy: str) -> None:
    report = check_plugin(Numa, args={"scoringStrategy": {"type": strategy}}, clusters=checked())
    assert report.ok, str(report)
    assert "refused no node" not in str(report)


def test_the_other_name_is_the_same_plugin() -> None:
    assert issubclass(NodeResourceTopologyMatch, Numa)
    assert default_registry()["NodeResourceTopologyMatch"] is NodeResourceTopologyMatch


def test_the_definition_in_the_examples_serves_the_kind_that_is_watched() -> None:
    manifest = yaml.safe_load((ROOT / "examples/numa/crd.yaml").read_text())
    (kind,) = Numa.watched_kinds
    spec = manifest["spec"]
    assert (spec["group"], spec["versions"][0]["name"]) == (kind.group, kind.version)
    assert (spec["names"]["plural"], spec["names"]["kind"]) == (kind.plural, kind.name)


def test_the_configuration_of_the_examples_is_valid() -> None:
    config = load_config(ROOT / "examples/numa/scheduler.yaml")
    assert config.profiles[0].scheduler_name == "default-scheduler"


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    assert check_examples("docs/optional-plugins/numa.md", tmp_path) == 2
