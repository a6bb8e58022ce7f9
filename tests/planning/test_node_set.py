"""Nodes for backlogs: every set is verified again, and a wide gap is explained."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.node import Taint
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.planning.catalogue import Offer, Shape
from moorage.planning.node_set import NodeSet, plan_nodes
from moorage.planning.results import Interrupted
from moorage.simulation.run import run_simulation
from moorage.simulation.scenario import Scenario
from moorage.simulation.workload import Arrival
from tests.builders import ZONE, spread
from tests.planning.planning_cases import SETTINGS, apart, decoded, new_pods, node, pod


def shape(name: str, price: float, cpu: str, memory: str, **fields: Any) -> Shape:
    amounts = {"cpu": parse_quantity(cpu), "memory": parse_quantity(memory)}
    return Shape(name, price, amounts, **{"zones": ("a", "b"), **fields})


SHAPES = (
    shape("small", 0.1, "4", "16Gi"),
    shape("large", 0.38, "16", "64Gi"),
    shape("fat", 0.25, "8", "64Gi", zones=("a",), max=2),
)


def backlog(seed: int) -> list[Pod]:
    """Pods of up to four classes: some spread over zones, some apart, some in one zone."""
    random, manifests = Random(seed), []
    for number in range(random.randint(1, 4)):
        app = f"app{number}"
        requests = {
            "cpu": random.choice(("250m", "500m", "1", "2", "3")),
            "memory": random.choice(("512Mi", "2Gi", "4Gi", "8Gi")),
        }
        kind = random.random()
        fields: dict[str, Any] = {}
        if kind < 0.2:
            fields["topology_spread_constraints"] = [spread(ZONE, {"matchLabels": {"app": app}})]
        elif kind < 0.35:
            app, fields["affinity"] = "red", apart()
        elif kind < 0.45:
            fields["node_selector"] = {ZONE: "b"}
        containers = [{"name": "main", "resources": {"requests": requests}}]
        for copy in range(random.randint(1, 8)):
            manifests.append(pod(f"p{number}-{copy}", app=app, containers=containers, **fields))
    return new_pods(*manifests)


def pending_on(plan: NodeSet, pods: list[Pod], shapes: tuple[Shape, ...], cluster: list[Object]) -> int:
    """The pods that a simulation with everything that is configured leaves pending on the nodes of a plan."""
    by_name = {each.name: each for each in shapes}
    nodes = [
        Offer(by_name[each.shape], each.zone).node(number)
        for each in plan.shapes
        for number in range(each.count)
    ]
    scenario = Scenario([*cluster, *nodes], lambda seed: [Arrival(0.0, each, None) for each in pods])
    return run_simulation(scenario, SETTINGS).result.pods["Pending"]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 50, 10))
def test_random_backlogs_cost_little_more_than_the_bound_or_it_is_said_why(first: int) -> None:
    near = 0
    for seed in range(first, first + 10):
        pods = backlog(seed)
        plan = plan_nodes([], pods, SHAPES, SETTINGS, max_simulations=40)
        assert plan.verified
        assert plan.complete
        assert pending_on(plan, pods, SHAPES, []) == 0
        assert sum(each.pods for each in plan.shapes) == plan.pods == len(pods)
        cost = sum(each.count * each.price_per_hour for each in plan.shapes)
        assert plan.cost_per_hour == pytest.approx(cost)
        assert 0 < plan.bound_per_hour <= cost + 1e-6
        assert plan.gap is not None
        assert plan.gap == pytest.approx(cost / plan.bound_per_hour - 1, abs=1e-5)
        assert plan.gap <= 0.1 or plan.why
        near += plan.gap <= 0.1
    assert near >= 6


def test_nodes_and_pending_pods_of_the_cluster_count() -> None:
    cluster = decoded(node("n1", cpu="4"), pod("a", "1", on="n1"), pod("waits", "3"))
    plan = plan_nodes(cluster, new_pods(pod("b", "3")), SHAPES, SETTINGS)
    assert [(each.shape, each.count, each.pods) for each in plan.shapes] == [("small", 1, 1)]
    assert (plan.pods, plan.on_existing, plan.gap) == (2, 1, 0)


def test_nothing_is_needed_where_everything_fits() -> None:
    plan = plan_nodes(decoded(node("n1")), new_pods(pod("a")), SHAPES, SETTINGS)
    assert (plan.shapes, plan.cost_per_hour, plan.verified, plan.on_existing) == ([], 0, True, 1)


def test_a_spread_constraint_is_named_where_it_costs() -> None:
    """Pods in two zones need two nodes, although one has room for all of them."""
    constraint = spread(ZONE, {"matchLabels": {"app": "red"}}, min_domains=2)
    pods = new_pods(*(pod(f"p{number}", topology_spread_constraints=[constraint]) for number in range(4)))
    plan = plan_nodes([], pods, SHAPES, SETTINGS)
    assert (plan.cost_per_hour, plan.bound_per_hour, plan.verified) == (0.2, 0.1, True)
    assert plan.why == [
        "on the nodes of the cheapest packing (0.1) 3 pods stay pending, but 0 without spread "
        "constraints and affinity between pods"
    ]


def test_a_limit_of_the_catalogue_is_kept_or_named() -> None:
    few = (shape("few", 0.1, "4", "16Gi", max=1), shape("dear", 1.0, "4", "16Gi"))
    pods = new_pods(*(pod(f"p{number}", "4") for number in range(3)))
    plan = plan_nodes([], pods, few, SETTINGS)
    assert sum(each.count for each in plan.shapes if each.shape == "few") == 1
    assert plan.cost_per_hour == 2.1
    plan = plan_nodes([], pods, few[:1], SETTINGS)
    assert not plan.verified
    assert plan.why[0] == "within the limits of the catalogue, 2 pods stay without room"
    assert [each.pods for each in plan.pending] == [2]


def test_pods_that_fit_no_shape_are_named() -> None:
    tainted = shape("batch", 0.1, "4", "16Gi", taints=(Taint(key="batch", effect="NoSchedule"),))
    plan = plan_nodes([], new_pods(pod("a"), pod("b", "99")), (tainted,), SETTINGS)
    assert not plan.verified
    assert plan.why == ["2 pods fit on no node of the catalogue, and on none that is there"]
    assert [each.pods for each in plan.pending] == [2]


def test_pods_that_nothing_helps_end_the_search() -> None:
    """A pod that wants to be beside one that does not exist stays pending on any number of nodes."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "nowhere"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    plan = plan_nodes([], new_pods(pod("a", affinity=affinity)), SHAPES, SETTINGS)
    assert (plan.verified, plan.complete, [each.pods for each in plan.pending]) == (False, True, [1])
    assert "without spread constraints and affinity between pods" in plan.why[0]


def test_an_interruption_leaves_the_best_set_up_to_then() -> None:
    def interrupt(done: int, total: int) -> None:
        raise Interrupted

    plan = plan_nodes([], new_pods(pod("a")), SHAPES, SETTINGS, progress=interrupt)
    assert not plan.complete


def test_there_must_be_pods() -> None:
    with pytest.raises(InputError, match="there are no pods to place; give --workload"):
        plan_nodes(decoded(node("n1")), [], SHAPES, SETTINGS)
