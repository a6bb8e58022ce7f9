"""Preemption: who is eligible, who goes, which node is chosen, and what is arranged."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.api.selectors import label_selector
from moorage.api.workloads import PodDisruptionBudget
from moorage.clock import VirtualClock
from moorage.cluster.cache import Cache
from moorage.engine.engine import Engine
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.effects import EvictPods, NominateNode
from moorage.framework.interface.extension_points import PostFilterResult
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Code
from moorage.framework.runtime.framework import Framework
from moorage.plugins import default_registry
from moorage.plugins.default_preemption.plugin import DefaultPreemption
from moorage.queue.cluster_events import ASSIGNED_POD_DELETE
from moorage.queue.observer import QueueObserver
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.scheduling_queue import Place, SchedulingQueue
from tests.builders import make_node, make_pod, make_profile, pod_term, port, spread

PLUGINS = (
    "NodeUnschedulable",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "DefaultPreemption",
)


def framework(seed: int = 1) -> Framework:
    return Framework(make_profile(*PLUGINS), default_registry(), Handle(random=Random(seed)))


def running(name: str, node: str, cpu: str = "1", priority: int = 0, **fields: Any) -> Pod:
    started = fields.pop("started", None)
    status = {"startTime": started} if started else {}
    return make_pod(
        name,
        uid=name,
        on=node,
        requests={"cpu": cpu},
        priority=priority,
        status={**status, **fields.pop("status", {})},
        **fields,
    )


def boss(cpu: str = "2", priority: int = 100, **fields: Any) -> Pod:
    return make_pod("boss", uid="boss", requests={"cpu": cpu}, priority=priority, **fields)


def small(name: str, **fields: Any) -> Object:
    return make_node(name, allocatable={"cpu": "2", "memory": "8Gi", "pods": "10"}, **fields)


def budget(name: str, allowed: int, selector: Any, disrupted: Iterable[str] = ()) -> PodDisruptionBudget:
    return convert(
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": selector},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
        PodDisruptionBudget,
    )


def preempt(
    pod: Pod, *objects: Object, nominated: Iterable[tuple[Pod, str]] = ()
) -> tuple[PostFilterResult, str]:
    cache = Cache(objects)
    for waiting, node in nominated:
        cache.nominations.put(waiting, node)
    decision = Engine(seed=0).decide(framework(), pod, cache.snapshot())
    assert decision.node is None
    assert decision.post_filter is not None
    cache.validate()
    return decision.post_filter, decision.message


def victims(result: PostFilterResult) -> list[str]:
    return [
        victim.name for effect in result.effects if isinstance(effect, EvictPods) for victim in effect.victims
    ]


def test_the_least_important_pods_go_and_the_rest_is_spared() -> None:
    result, message = preempt(
        boss("1"), small("a"), running("low", "a", priority=1), running("mid", "a", priority=2)
    )
    assert (result.nominated_node, victims(result)) == ("a", ["low"])
    assert message == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: found a potential placement for pod on node a, preempting 1 victims"
    )


@pytest.mark.parametrize(
    ("others", "chosen"),
    [
        pytest.param(
            [running("x", "a", "2", 5), running("y", "b", "2", 4)],
            "b",
            id="the highest priority lost is lowest",
        ),
        pytest.param(
            [
                running("x1", "a", "1", 4),
                running("x2", "a", "1", 3),
                running("y1", "b", "1", 4),
                running("y2", "b", "1", 2),
            ],
            "b",
            id="then the sum of priorities",
        ),
        pytest.param(
            [running("x1", "a", "1", 4), running("x2", "a", "1", 4), running("y1", "b", "2", 4)],
            "b",
            id="then the number of pods",
        ),
        pytest.param(
            [
                running("x", "a", "2", 4, started="2026-01-01T00:00:00Z"),
                running("y", "b", "2", 4, started="2026-02-01T00:00:00Z"),
            ],
            "b",
            id="then whose most important victim started last",
        ),
        pytest.param(
            [running("x", "a", "2", 4, started="2026-01-01T00:00:00Z"), running("y", "b", "2", 4)],
            "b",
            id="a pod that has not started counts as started now",
        ),
        pytest.param(
            [
                running("x1", "a", "1", 4, started="2026-02-01T00:00:00Z"),
                running("x2", "a", "1", 3, started="2026-01-01T00:00:00Z"),
                running("y1", "b", "1", 4, started="2026-01-15T00:00:00Z"),
                running("y2", "b", "1", 3, started="2026-03-01T00:00:00Z"),
            ],
            "a",
            id="when less important victims started does not matter",
        ),
        pytest.param(
            [running("x", "a", "2", -5), running("y1", "b", "1", -5), running("y2", "b", "1", -5)],
            "a",
            id="negative priorities",
        ),
    ],
)
def test_the_node_where_it_hurts_least_is_chosen(others: list[Pod], chosen: str) -> None:
    result, _ = preempt(boss(), small("a"), small("b"), *others)
    assert result.nominated_node == chosen


def test_disruption_budgets_come_before_everything_else() -> None:
    guarded = {"matchLabels": {"app": "guarded"}}
    result, _ = preempt(
        boss(),
        small("a"),
        small("b"),
        running("cheap", "a", "2", 0, labels={"app": "guarded"}),
        running("dear", "b", "2", 50),
        budget("g", 0, guarded),
    )
    assert result.nominated_node == "b"


def test_a_pod_that_breaks_a_budget_is_spared_first() -> None:
    result, _ = preempt(
        boss("1"),
        small("a"),
        running("guarded", "a", "1", 0, labels={"app": "guarded"}),
        running("important", "a", "1", 50),
        budget("g", 0, {"matchLabels": {"app": "guarded"}}),
    )
    assert victims(result) == ["important"]


@pytest.mark.parametrize(
    ("guard", "broken"),
    [
        pytest.param(budget("g", 1, {"matchLabels": {"app": "x"}}), True, id="two of which one may go"),
        pytest.param(budget("g", 2, {"matchLabels": {"app": "x"}}), False, id="both may go"),
        pytest.param(budget("g", 0, {}), False, id="an empty selector means nobody"),
        pytest.param(budget("g", 0, None), False, id="no selector means nobody"),
        pytest.param(
            budget("g", 1, {"matchLabels": {"app": "x"}}, ["p1"]),
            False,
            id="whoever is going already does not count",
        ),
        pytest.param(
            budget("g", 0, {"matchExpressions": [{"key": "a", "operator": "Bad"}]}),
            False,
            id="a budget that cannot be understood",
        ),
    ],
)
def test_when_a_budget_is_broken(guard: PodDisruptionBudget, broken: bool) -> None:
    labels = {"app": "x"}
    pods = [running("p1", "a", "1", 1, labels=labels), running("p2", "a", "1", 2, labels=labels)]
    result, _ = preempt(boss(), small("a"), small("b"), *pods, running("other", "b", "2", 60), guard)
    assert result.nominated_node == ("b" if broken else "a")


def test_pods_of_equal_or_higher_priority_never_go() -> None:
    result, message = preempt(boss(priority=5), small("a"), running("x", "a", "2", 5))
    assert (result.nominated_node, result.effects) == ("", ())
    assert message.endswith(
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_nodes_that_no_eviction_helps_are_counted_as_such() -> None:
    _, message = preempt(boss("9"), small("a"), small("b", unschedulable=True), running("x", "a", "1", 0))
    assert message.endswith(
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_why_eviction_did_not_help_is_reported_for_each_node() -> None:
    _, message = preempt(
        boss("2"),
        small("a"),
        running("low", "a", "1", 0),
        running("high", "a", "1", 500),
        small("b"),
        running("same", "b", "2", 100),
    )
    assert message.endswith(
        "0/2 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod."
    )


def test_a_pod_that_preempts_never_does_not() -> None:
    _, message = preempt(boss(preemption_policy="Never"), small("a"), running("x", "a", "2", 0))
    assert message.endswith("preemption: not eligible due to preemptionPolicy=Never.")


LEAVING = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}


def test_a_nomination_that_is_still_being_served_is_waited_for() -> None:
    pod = boss(status={"nominatedNodeName": "a"})
    result, message = preempt(
        pod,
        small("a"),
        small("b"),
        running("gone", "a", "2", 0, terminating=True, status=LEAVING),
        running("x", "b", "2", 0),
    )
    assert message.endswith("preemption: not eligible due to a terminating pod on the nominated node.")
    assert result.nominated_node is None
    result, _ = preempt(
        pod, small("a"), small("b"), running("gone", "a", "2", 0, terminating=True), running("x", "b", "2", 9)
    )
    assert result.nominated_node == "a"


def test_a_nominated_node_that_no_longer_helps_is_given_up() -> None:
    pod = boss(status={"nominatedNodeName": "a"})
    gone = running("gone", "a", "2", 0, terminating=True, status=LEAVING)
    result, _ = preempt(pod, small("a", unschedulable=True), small("b"), gone, running("x", "b", "2", 0))
    assert result.nominated_node == "b"


def test_victims_that_are_leaving_already_are_not_deleted_again() -> None:
    result, _ = preempt(boss(), small("a"), running("going", "a", "2", 0, terminating=True))
    assert (result.nominated_node, victims(result)) == ("a", [])


def test_less_important_pods_that_wait_for_the_same_node_look_elsewhere() -> None:
    waiting = make_pod("waiting", uid="waiting", requests={"cpu": "1"}, priority=50)
    result, _ = preempt(boss(), small("a"), running("x", "a", "2", 0), nominated=[(waiting, "a")])
    assert NominateNode(waiting, "") in result.effects


def test_more_important_pods_that_wait_for_a_node_take_part_of_it() -> None:
    waiting = make_pod("waiting", uid="waiting", requests={"cpu": "1"}, priority=500)
    result, message = preempt(boss("2"), small("a"), running("x", "a", "2", 0), nominated=[(waiting, "a")])
    assert result.nominated_node == ""
    assert message.endswith("preemption: 0/1 nodes are available: 1 Insufficient cpu.")


def test_while_victims_go_the_pod_is_not_tried_again() -> None:
    made = framework()
    cache = Cache([small("a"), running("x", "a", "2", 0)])
    pod = boss()
    decision = Engine().decide(made, pod, cache.snapshot())
    assert decision.post_filter is not None
    gate = made.pre_enqueue(pod)
    assert gate is not None
    assert gate.message == "waiting for the preemption for this pod to be finished"
    decision.post_filter.done()
    assert made.pre_enqueue(pod) is None


def test_victims_do_not_requeue_the_preemptor_until_preemption_ends() -> None:
    made, pod, additions = framework(), boss(), Additions()
    cache = Cache([small("a"), running("x", "a", "2", 0), small("b"), running("y", "b", "2", 500)])
    rules = {made.name: made.queue_rules()}
    queue = SchedulingQueue(rules, made.sort_key, VirtualClock(), observer=additions)
    queue.add(pod)
    queued = queue.pop_now()
    assert queued is not None
    arranged = Engine().decide(made, pod, cache.snapshot()).post_filter
    assert arranged is not None
    queue.put_back(queued, pod, unschedulable_plugins=["NodeResourcesFit"])
    places = []
    for number in range(3):
        queue.move_all(ASSIGNED_POD_DELETE, running(f"gone-{number}", "b"), None)
        places.append((queue.place_of(pod.uid), additions.count))
    assert places == [(Place.GATED, 3)] * 3, "after being new, put back, and woken once"
    arranged.done()
    queue.activate([pod])
    assert queue.place_of(pod.uid) is Place.ACTIVE


class Additions(QueueObserver):
    """Counts how often pods have come into any queue."""

    count = 0

    def incoming(self, queue: str, event: str, queued: QueuedPod) -> None:
        self.count += 1


def test_of_pods_that_have_not_started_the_last_on_the_node_is_spared_first() -> None:
    names = ("first", "second", "third")
    pods = [running(name, "a", "500m", 1) for name in names]
    result, _ = preempt(boss("1500m"), small("a"), *pods)
    assert victims(result) == ["second", "first"]


def test_a_pod_that_goes_leaves_its_place_to_the_last_one() -> None:
    cache = Cache([small("a"), *(running(name, "a", "500m", 1) for name in ("x", "y", "z"))])
    cache.remove_pod(running("x", "a"))
    cache.put_pod(running("w", "a", "500m", 1))
    assert list(cache.snapshot().pods_of(0)) == ["z", "y", "w"]


def test_removing_a_pod_that_keeps_others_away_helps() -> None:
    hostile = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                pod_term("host", {"matchLabels": {"app": "boss"}})
            ]
        }
    }
    nodes = [small(name, labels={"host": name}) for name in ("a", "b")]
    result, _ = preempt(
        boss("1", labels={"app": "boss"}),
        *nodes,
        running("hostile", "a", "0", 1, affinity=hostile),
        running("guard", "b", "0", 500, affinity=hostile),
    )
    assert (result.nominated_node, victims(result)) == ("a", ["hostile"])


def test_only_a_share_of_the_candidates_is_compared() -> None:
    plugin = DefaultPreemption(
        convert(
            {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 20},
            type(framework().profile.args("DefaultPreemption")),
        ),
        Handle(),
    )
    assert [plugin._enough(nodes) for nodes in (5, 100, 1000)] == [5, 20, 100]


# Against a plain reference, one node and one pod at a time, on clusters really without the pods in question


def reference(pod: Pod, cache_objects: list[Object], node: str) -> tuple[set[str], int] | None:
    """The victims on a node and how many budgets they break, or None if evicting does not help."""
    budgets = [item for item in cache_objects if isinstance(item, PodDisruptionBudget)]
    here = [item for item in cache_objects if isinstance(item, Pod) and item.spec.node_name == node]
    lower = [other for other in here if other.priority < pod.priority]
    lower.sort(key=lambda other: (-other.priority, other.status.start_time is None, other.status.start_time))

    def fits(without: list[Pod]) -> bool:
        gone = {other.uid for other in without}
        left = Cache(item for item in cache_objects if not (isinstance(item, Pod) and item.uid in gone))
        everything = Nodes(left.snapshot())
        made, cycle = framework(), CycleState()
        candidates = made.pre_filter(cycle, pod, everything, Diagnosis(len(everything)))
        return (
            candidates is not None
            and node in made.filter(cycle, pod, candidates, Diagnosis(len(everything))).names
        )

    if not lower or not fits(lower):
        return None
    left = {each.name: each.status.disruptions_allowed for each in budgets}
    breaking = []
    for other in lower:
        broken = False
        for each in budgets:
            selector = label_selector(each.spec.selector)
            if other.labels and not selector.empty and selector.matches(other.labels):
                left[each.name] -= 1
                broken |= left[each.name] < 0
        if broken:
            breaking.append(other)
    gone, broken_count = list(lower), 0
    for other in [*breaking, *(each for each in lower if each not in breaking)]:
        gone.remove(other)
        if not fits(gone):
            gone.append(other)
            broken_count += other in breaking
    return {other.name for other in gone}, broken_count


@st.composite
def crowded(draw: st.DrawFn) -> tuple[Pod, list[Object]]:
    apps = st.sampled_from(["web", "db", "boss"])
    objects: list[Object] = []
    term = pod_term("zone", {"matchLabels": {"app": "boss"}})
    hostile = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for index in range(draw(st.integers(1, 3))):
        name = f"n{index}"
        objects.append(small(name, labels={"zone": draw(st.sampled_from(["x", "y"]))}))
        for number in range(draw(st.integers(0, 4))):
            objects.append(
                running(
                    f"{name}-{number}",
                    name,
                    draw(st.sampled_from(["0", "500m", "1"])),
                    draw(st.sampled_from([0, 1, 5, 20])),
                    labels={"app": draw(apps)},
                    started=f"2026-01-{number + 1:02d}T00:00:{index:02d}Z",
                    affinity=draw(st.sampled_from([None, hostile])),
                    containers=[
                        {
                            "name": "c",
                            "resources": {"requests": {"cpu": draw(st.sampled_from(["0", "500m", "1"]))}},
                            "ports": draw(st.sampled_from([[], [port(80)]])),
                        }
                    ],
                )
            )
    for number in range(draw(st.integers(0, 2))):
        objects.append(budget(f"b{number}", draw(st.integers(0, 1)), {"matchLabels": {"app": draw(apps)}}))
    near = pod_term("zone", {"matchLabels": {"app": draw(apps)}})
    pod = boss(
        draw(st.sampled_from(["500m", "1", "2"])),
        draw(st.sampled_from([1, 5, 10])),
        labels={"app": "boss"},
        affinity=draw(
            st.sampled_from(
                [
                    None,
                    {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}},
                    {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}},
                ]
            )
        ),
        topology_spread_constraints=draw(
            st.sampled_from([None, [spread("zone", {"matchLabels": {"app": "boss"}})]])
        ),
    )
    return pod, objects


@settings(max_examples=150)
@given(crowded())
def test_victims_are_those_of_a_plain_reference_and_nothing_is_changed(
    case: tuple[Pod, list[Object]],
) -> None:
    pod, objects = case
    cache = Cache(objects)
    cache.snapshot().label("zone")
    before = cache.snapshot().contents()
    made = framework()
    decision = Engine(seed=0).decide(made, pod, cache.snapshot())
    assert cache.snapshot().contents() == before
    cache.validate()
    if decision.node is not None:
        return
    assert decision.post_filter is not None
    expected = {
        item.name: found
        for item in objects
        if item.kind == "Node"
        and decision.diagnosis.code_of(cache.snapshot().row_of[item.name]) is Code.UNSCHEDULABLE
        and (found := reference(pod, objects, item.name)) is not None
    }
    priorities = {item.name: item.priority for item in objects if isinstance(item, Pod)}
    tied = {node: {v.name for v in gone} for node, gone in decision.post_filter.tied().items()}
    assert bool(tied) == bool(expected)
    if expected:
        measures = {
            node: (
                broken,
                max(priorities[name] for name in gone),
                sum(priorities[name] + 2**31 for name in gone),
                len(gone),
            )
            for node, (gone, broken) in expected.items()
        }
        best = {node for node, measure in measures.items() if measure == min(measures.values())}
        assert set(tied) <= best
        for node, gone in tied.items():
            assert gone == expected[node][0]
            assert all(priorities[name] < pod.priority for name in gone)


def test_which_of_equal_nodes_is_taken_is_left_to_chance() -> None:
    names = "abcde"
    cache = Cache([*map(small, names), *(running(f"low-{name}", name, "2") for name in names)])
    decisions = [Engine(seed=0).decide(framework(seed), boss(), cache.snapshot()) for seed in range(40)]
    assert {each.post_filter.nominated_node for each in decisions if each.post_filter} == set(names)
