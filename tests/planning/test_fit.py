"""How many more pods fit: beside plain arithmetic, and one by one in fresh clusters."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.pod import Pod
from moorage.api.resource_requests import pod_requests
from moorage.framework.interface.cycle_state import CycleState
from moorage.planning.fit import Fit, plan_fit
from moorage.planning.results import Interrupted
from moorage.planning.trial import numbered
from moorage.sim.cluster import SimulatedCluster
from tests.builders import ZONE, spread
from tests.planning.planning_cases import (
    SETTINGS,
    apart,
    clusters,
    decoded,
    new_pods,
    node,
    nodes_of,
    pod,
    pods_of,
)


def counts(plan: Fit) -> dict[str, int]:
    return {each.node: each.pods for each in plan.nodes}


@settings(max_examples=40)
@given(clusters(), st.sampled_from(("1", "2", "500m")))
def test_the_number_is_that_of_plain_arithmetic(cluster: list[Object], cpu: str) -> None:
    (new,) = new_pods(pod("new", cpu, app="other"))
    plan = plan_fit(cluster, [new], SETTINGS)
    expected = {}
    for name, each in nodes_of(cluster).items():
        there = [one for one in pods_of(cluster).values() if one.spec.node_name == name]
        free = each.status.allocatable["cpu"] - sum(pod_requests(one)["cpu"] for one in there)
        expected[name] = min(free // pod_requests(new)["cpu"], 10 - len(there))
    assert counts(plan) == {name: count for name, count in expected.items() if count}
    assert plan.pods == plan.rounds == sum(expected.values())
    assert plan.complete
    assert sum(each.nodes for each in (*plan.ran_out, *plan.never_fitted)) == len(expected)


@settings(max_examples=25)
@given(clusters(), st.booleans())
def test_the_plan_is_that_of_deciding_one_by_one(cluster: list[Object], is_apart: bool) -> None:
    """Each pod is decided in a cluster of its own; the last one fits nowhere there either."""
    fields = (
        {"affinity": apart()}
        if is_apart
        else {"topology_spread_constraints": [spread(ZONE, {"matchLabels": {"app": "red"}})]}
    )
    (new,) = new_pods(pod("new", **fields))
    plan = plan_fit(cluster, [new], SETTINGS)
    placed, left = list[Pod](), counts(plan)
    for number in range(plan.pods):
        one = numbered(new, number)
        feasible = _feasible([*cluster, *placed], one)
        place = next(name for name in feasible if left.get(name))
        left[place] -= 1
        placed.append(_on(one, place))
    assert _feasible([*cluster, *placed], numbered(new, plan.pods)) == []


def _feasible(objects: list[Object], one: Pod) -> list[str]:
    cluster = SimulatedCluster(objects, SETTINGS.config, SETTINGS.registry)
    return cluster.decide(one, CycleState()).feasible.names


def _on(one: Pod, place: str) -> Pod:
    return replace(one, spec=replace(one.spec, node_name=place))


def test_it_says_what_ran_out_and_what_never_fitted() -> None:
    cluster = decoded(
        node("full", cpu="1"), node("roomy", cpu="3"), node("tainted", taints=["dedicated=batch:NoSchedule"])
    )
    plan = plan_fit(cluster, new_pods(pod("web")), SETTINGS)
    assert (plan.rounds, counts(plan), plan.runs_out) == (4, {"full": 1, "roomy": 3}, "cpu")
    assert [(each.plugin, each.reasons, each.nodes) for each in plan.ran_out] == [
        ("NodeResourcesFit", ["Insufficient cpu"], 2)
    ]
    assert [(each.plugin, each.nodes) for each in plan.never_fitted] == [("TaintToleration", 1)]
    assert plan.message.startswith(
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient"
    )


def test_a_set_fits_as_a_whole_or_not_at_all() -> None:
    pods = new_pods(pod("small", "1"), pod("large", "2"))
    plan = plan_fit(decoded(node("n", cpu="7")), pods, SETTINGS)
    assert (plan.rounds, plan.pods, plan.failed_pod) == (2, 4, "default/large")
    assert counts(plan) == {"n": 4}


def test_pending_pods_of_the_cluster_come_first() -> None:
    cluster = decoded(node("n", cpu="4"), pod("waits", "2"), pod("too-large", "9"))
    plan = plan_fit(cluster, new_pods(pod("web")), SETTINGS)
    assert (plan.rounds, plan.pending_before) == (2, 1)


def test_pods_run_out() -> None:
    plan = plan_fit(decoded(node("n", cpu="100")), new_pods(pod("web", "1m")), SETTINGS)
    assert (plan.rounds, plan.runs_out) == (10, "pods")


def test_a_maximum_and_an_interruption_leave_a_plan_that_says_so() -> None:
    cluster = decoded(node("n", cpu="4"))
    assert (plan := plan_fit(cluster, new_pods(pod("web")), SETTINGS, 3)).rounds == 3
    assert not plan.complete

    def interrupt(done: int, total: int) -> None:
        if done == 2:
            raise Interrupted

    plan = plan_fit(cluster, new_pods(pod("web")), SETTINGS, None, interrupt)
    assert (plan.rounds, plan.pods, counts(plan), plan.complete) == (2, 2, {"n": 2}, False)


def test_a_pod_of_another_scheduler_fits_nowhere() -> None:
    plan = plan_fit(decoded(node("n")), new_pods(pod("web", scheduler_name="other")), SETTINGS)
    assert plan.rounds == 0
    assert plan.message == "pod web-0: wants scheduler other; there is default-scheduler"


@pytest.mark.parametrize(("cluster", "pods"), [([], [pod("web")]), ([node("n")], [])])
def test_nothing_to_plan_with_is_an_error(
    cluster: list[dict[str, object]], pods: list[dict[str, object]]
) -> None:
    with pytest.raises(InputError, match="there are no"):
        plan_fit(decoded(*cluster), new_pods(*pods), SETTINGS)
