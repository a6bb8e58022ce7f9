from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from moorage import CycleState, Diagnosis, SimulatedCluster, decide, default_config, default_registry
from moorage.api.node import Namespace
from moorage.clock import VirtualClock
from moorage.framework.interface.handle import Handle, NotHereError
from moorage.framework.loading.plugin_discovery import enabled_everywhere
from tests.builders import make_namespace, make_node, make_pod
from tests.framework.helpers import POD, framework_of, nodes


def handle() -> tuple[Handle, VirtualClock]:
    clock = VirtualClock()
    return Handle(clock=clock), clock


def test_waiting_ends_when_an_object_changes_to_what_is_waited_for() -> None:
    async def run() -> bool:
        made, _ = handle()
        table = made.objects.of(Namespace)
        waiting = asyncio.ensure_future(made.wait_until(lambda: table.get("", "b") is not None, 10))
        await asyncio.sleep(0)
        table.put(make_namespace("a"))
        await asyncio.sleep(0)
        assert not waiting.done()
        table.put(make_namespace("b"))
        return await waiting

    assert asyncio.run(run())


def test_waiting_ends_with_the_time() -> None:
    async def run() -> bool:
        made, clock = handle()
        waiting = asyncio.ensure_future(made.wait_until(lambda: False, 10))
        await asyncio.sleep(0)
        clock.advance(9.9)
        await asyncio.sleep(0)
        assert not waiting.done()
        clock.advance(0.1)
        return await waiting

    assert not asyncio.run(run())


def test_what_the_condition_raises_ends_the_wait() -> None:
    async def run() -> None:
        made, _ = handle()
        table = made.objects.of(Namespace)

        def condition() -> bool:
            if len(table):
                raise LookupError("gone")
            return False

        waiting = asyncio.ensure_future(made.wait_until(condition, 10))
        await asyncio.sleep(0)
        table.put(make_namespace("a"))
        await waiting

    with pytest.raises(LookupError, match="gone"):
        asyncio.run(run())


def test_virtual_time_runs_timers_in_order_and_forgets_cancelled_ones() -> None:
    clock, rung = VirtualClock(), []
    clock.call_later(2, lambda: rung.append("b"))
    clock.call_later(1, lambda: rung.append("a"))
    clock.call_later(1.5, lambda: rung.append("never")).cancel()

    def ring_later() -> None:
        clock.call_later(0.5, lambda: rung.append("nested"))

    clock.call_later(1, ring_later)
    clock.advance(3)
    assert (rung, clock.now()) == (["a", "nested", "b"], 3)


# Where there is no cluster


class HandleReader:
    name = "Curious"
    seen: list[Any]

    def __init__(self, handle: Handle) -> None:
        type(self).seen = []
        self._handle = handle

    def filter_node(self, cycle: Any, pod: Any, node: Any) -> str | None:
        handle = self._handle
        handle.record_event(pod, "Looked", "nobody reads this")
        handle.activate([pod])
        self.seen.append((handle.profile, handle.is_live, handle.nodes().names, len(handle.extenders)))
        return None

    def reserve(self, cycle: Any, pod: Any, node_name: str) -> None:
        self.seen.append([info.pod.name for info in self._handle.nominations.on(node_name)])

    async def pre_bind(self, cycle: Any, pod: Any, node_name: str) -> None:
        await self._handle.client.get  # type: ignore[misc]  # there is no client to have one


def test_what_a_simulation_lends() -> None:
    assert decide(make_pod("p"), [make_node("a")], [HandleReader]).node == "a"
    assert HandleReader.seen == [("default-scheduler", False, ["a"], 0)]


class TellsTime:
    name = "TellsTime"

    def __init__(self, handle: Handle) -> None:
        self._clock = handle.clock

    def filter_node(self, cycle: Any, pod: Any, node: Any) -> str:
        return f"{self._clock.utc_now():%Y-%m-%d}"


def test_a_decision_is_made_at_a_time() -> None:
    moment = datetime(2001, 5, 17, tzinfo=UTC)
    assert "1 2001-05-17" in decide(make_pod("p"), [make_node("a")], [TellsTime], now=moment).message
    assert "1 2001-05-17" not in decide(make_pod("p"), [make_node("a")], [TellsTime]).message


def test_a_decision_is_made_at_present() -> None:
    before = datetime.now(UTC)
    config, registry = default_config(), default_registry()
    clock = SimulatedCluster([], config, registry).profiles["default-scheduler"].handle.clock
    assert before <= clock.utc_now() <= datetime.now(UTC)


def test_what_a_simulation_has_not_says_so() -> None:
    config, registry = default_config(), default_registry()
    registry.register("Curious", HandleReader)
    cluster = SimulatedCluster([make_node("a")], enabled_everywhere(config, HandleReader), registry)
    pod, cycle = make_pod("p", uid="p"), CycleState()
    assert cluster.decide(pod, cycle).node == "a"
    cluster.cache.nominations.put(make_pod("other", uid="other"), "a")
    status = cluster.bind(pod, "a", cycle)
    assert "NotHereError: handle.client: a simulation has no API server" in status.message
    assert HandleReader.seen[-1] == ["other"]
    assert list(cluster.cache.pods()) == []


def test_filters_are_those_of_the_profile() -> None:
    with pytest.raises(NotHereError, match="there are filters only in a profile"):
        Handle().run_filters(CycleState(), POD, nodes("a"), Diagnosis(1))

    class OnlyB:
        name = "OnlyB"

        def filter_node(self, cycle: Any, pod: Any, node: Any) -> str | None:
            return None if node.name == "b" else "no"

    handle = framework_of(OnlyB()).handle
    assert handle.run_filters(CycleState(), POD, nodes("a", "b"), Diagnosis(2)).names == ["b"]
