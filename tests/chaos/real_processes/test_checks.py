"""What watches and lists are compared with, and what plans are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from moorage_cluster.chaos.real_processes.observer import Observer
from moorage_cluster.chaos.real_processes.scenarios import SCENARIOS, new_plan
from moorage_cluster.chaos.real_processes.users import Ledger


def pod(name: str, node: str = "", cpu: str = "1") -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, "uid": f"uid-{name}", "namespace": "default"}, "spec": spec}


def observed(steps: Callable[[Observer], None]) -> tuple[Observer, list[str]]:
    """An observer of one node with two CPUs, and what it finds in some steps."""
    failures: list[str] = []

    async def observe() -> Observer:
        observer = Observer(cast(Any, None), failures.append)
        observer.nodes.objects["", "n1"] = {"status": {"allocatable": {"cpu": "2", "pods": "10"}}}
        steps(observer)
        await asyncio.sleep(0)
        return observer

    return asyncio.run(observe()), failures


def see(observer: Observer, *pods: dict[str, Any]) -> None:
    for each in pods:
        observer.pods.objects["default", each["metadata"]["name"]] = each
        for listener in observer.pods.listeners:
            listener("MODIFIED", each, None)


MOVES: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "bound once": ([pod("a"), pod("a", "n1"), pod("a", "n1")], []),
    "moved": ([pod("a", "n1"), pod("a", "n2")], ["pod a was moved from node n1 to n2"]),
    "taken back": ([pod("a", "n1"), pod("a")], ["pod a was moved from node n1 to no node"]),
    "full": ([pod("a", "n1"), pod("b", "n1")], []),
    "over-committed": (
        [pod("a", "n1"), pod("b", "n1", cpu="1001m")],
        ["node n1 is over-committed: cpu 2001000000 of 2000000000"],
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_what_a_watch_shows(name: str) -> None:
    pods, failures = MOVES[name]
    assert observed(lambda observer: see(observer, *pods))[1] == failures


def test_pods_that_are_replaced_at_once_are_looked_at_together() -> None:
    def relist(observer: Observer) -> None:
        see(observer, pod("a", "n1", cpu="2"))
        see(observer, pod("b", "n1", cpu="2"))
        del observer.pods.objects["default", "a"]

    assert observed(relist)[1] == []


@pytest.mark.parametrize(("cpu", "waiting"), [("1", ["late"]), ("1001m", [])])
def test_pods_wait_if_there_is_room_for_them(cpu: str, waiting: list[str]) -> None:
    observer, _ = observed(lambda observer: see(observer, pod("a", "n1"), pod("late", cpu=cpu)))
    assert observer.waiting() == waiting


DIFFERENCES: dict[str, tuple[Ledger, dict[str, str], list[str]]] = {
    "all is there": (Ledger(present={"a": "1"}, gone={"b"}), {"a": "1"}, []),
    "lost": (
        Ledger(present={"a": "1"}),
        {},
        ["pod a is lost, whose creation was acknowledged"],
    ),
    "another of the name": (
        Ledger(present={"a": "1"}),
        {"a": "2"},
        ["pod a is lost, whose creation was acknowledged"],
    ),
    "back": (
        Ledger(gone={"b"}),
        {"b": "1"},
        ["pod b is there, whose deletion was acknowledged or creation refused"],
    ),
    "unknown and there": (Ledger(unknown={"c"}), {"c": "1"}, []),
    "unknown and gone": (Ledger(present={"c": "1"}, unknown={"c"}), {}, []),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_what_was_acknowledged_is_stored(name: str) -> None:
    ledger, stored, differences = DIFFERENCES[name]
    assert ledger.differences(stored) == differences


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_seed_is_one_plan(scenario: str) -> None:
    plan = new_plan(scenario, 7, 60.0)
    assert plan == new_plan(scenario, 7, 60.0)
    assert plan != new_plan(scenario, 8, 60.0)
    assert {(each.what, each.whom) for each in plan.faults} <= set(SCENARIOS[scenario].kinds)
    assert all(each.at < plan.seconds for each in plan.faults)
