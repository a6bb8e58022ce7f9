"""What evictions are judged by: which pods have to go from a node, and how many budgets that violates."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from moorage.api.manifests import Manifest
from moorage.framework.interface.effects import EvictPods
from moorage_cluster.chaos.evictions import JUDGED, ClusterView, Cost, problems
from moorage_cluster.chaos.run import run_script
from moorage_cluster.chaos.scenarios import new_script
from tests.builders import make_pod


def node(name: str, cpu: str = "2") -> Manifest:
    return {"metadata": {"name": name}, "spec": {}, "status": {"allocatable": {"cpu": cpu, "pods": "10"}}}


def pod(
    name: str, where: str = "", *, priority: int = 0, team: str = "open", cpu: str = "1", **status: str
) -> Manifest:
    return {
        "metadata": {"name": name, "uid": name, "labels": {"team": team}},
        "spec": {
            "priority": priority,
            "containers": [{"resources": {"requests": {"cpu": cpu}}}],
            **({"nodeName": where} if where else {}),
        },
        "status": status,
    }


def budget(allowed: int) -> Manifest:
    return {
        "metadata": {"name": "safe", "uid": "budget"},
        "spec": {"selector": {"matchLabels": {"team": "safe"}}},
        "status": {"disruptionsAllowed": allowed},
    }


def view(*pods: Manifest, allowed: int = 0) -> ClusterView:
    waiting = {each["metadata"]["uid"]: each for each in pods if "nodeName" not in each["spec"]}
    placed = [each for each in pods if "nodeName" in each["spec"]]
    return ClusterView([node("n")], placed, waiting, [budget(allowed)])


def cost(violations: int, *victims: str) -> Cost:
    return Cost(frozenset(victims), violations)


WANTS = pod("wants", priority=10)
COSTS: dict[str, tuple[ClusterView, list[Cost]]] = {
    "the less important pod goes": (
        view(pod("a", "n", priority=1), pod("b", "n", priority=2), WANTS),
        [cost(0, "a")],
    ),
    "the one that started last goes": (
        view(
            pod("a", "n", startTime="2026-01-01T00:00:02Z"), pod("b", "n", startTime="2026-01-01T00:00:01Z")
        ),
        [cost(0, "a")],
    ),
    "of equals, any goes": (view(pod("a", "n"), pod("b", "n")), [cost(0, "b"), cost(0, "a")]),
    "a protected one is spared": (
        view(pod("a", "n", priority=1, team="safe"), pod("b", "n", priority=2)),
        [cost(0, "b")],
    ),
    "a protected one goes if it has to": (view(pod("a", "n", cpu="2", team="safe")), [cost(1, "a")]),
    "a budget may allow it": (view(pod("a", "n", cpu="2", team="safe"), allowed=1), [cost(0, "a")]),
    "nobody of the same priority goes": (view(pod("a", "n", cpu="2", priority=10)), []),
    "nobody goes if there is room": (view(pod("a", "n")), []),
    "room is kept for who is nominated": (
        view(pod("a", "n"), pod("b", priority=10, nominatedNodeName="n")),
        [cost(0, "a")],
    ),
}


@pytest.mark.parametrize("name", COSTS)
def test_what_room_costs(name: str) -> None:
    cluster, costs = COSTS[name]
    assert cluster.costs(WANTS, cluster.nodes[0]) == costs


def test_nothing_is_said_about_many_equal_pods() -> None:
    many = view(*(pod(f"p{number}", "n", cpu="400m") for number in range(5)))
    assert many.costs(WANTS, many.nodes[0]) is None


Costs = Mapping[str, list[Cost]]
CHOICES: dict[str, tuple[Costs, list[str]]] = {
    "the only node": ({"n": [cost(1, "v")], "m": []}, []),
    "fewer violations elsewhere": (
        {"n": [cost(1, "v")], "m": [cost(0, "w")]},
        ["pods are evicted from node n for pod wants with 1 violations of budgets, and node m costs fewer"],
    ),
    "as many elsewhere": ({"n": [cost(1, "v")], "m": [cost(1, "w")]}, []),
    "perhaps as many elsewhere": ({"n": [cost(1, "v")], "m": [cost(1, "w"), cost(0, "x")]}, []),
    "another pod": (
        {"n": [cost(0, "w")]},
        ["other pods are evicted from node n for pod wants than those that have to go"],
    ),
    "one of equal pods": ({"n": [cost(0, "w"), cost(0, "v")]}, []),
    "one more goes already": ({"n": [cost(0, "v", "gone")]}, []),
}


@pytest.mark.parametrize("name", CHOICES)
def test_which_evictions_are_wrong(name: str) -> None:
    costs, wrong = CHOICES[name]
    gone = pod("gone", "n")
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    eviction = EvictPods((make_pod("v", uid="v"),), make_pod("wants", uid="wants"), "n")
    assert list(problems(WANTS, eviction, dict(costs), view(gone))) == wrong


def test_evictions_of_runs_are_judged() -> None:
    assert sum(run_script(new_script("budgets", seed)).injected.get(JUDGED, 0) for seed in range(3)) > 3
