"""Reserve, permit and bind: what happens to a pod that has a node."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from moorage.clock import VirtualClock
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.effects import BindPod, Effect
from moorage.framework.interface.filter_result import refuse_where
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.status import (
    SKIP,
    SUCCESS,
    Code,
    PluginError,
    Status,
    unschedulable,
    wait,
)
from moorage.framework.runtime.framework import Framework
from tests.framework.helpers import POD, Log, framework_of, nodes, recorder


def test_unreserve_runs_for_all_plugins_in_reverse_order_whatever_they_do() -> None:
    log = Log()
    plugins = [
        recorder("One", log, reserve=None, unreserve=None),
        recorder("Two", log, reserve=unschedulable("taken"), unreserve=RuntimeError("oops")),
        recorder("Three", log, reserve=None, unreserve=None),
    ]
    framework = framework_of(*plugins)
    status = framework.reserve(CycleState(), POD, "a")
    assert (status.code, status.plugin) == (Code.UNSCHEDULABLE, "Two")
    assert log == ["One.reserve", "Two.reserve"]
    log.clear()
    failures = framework.unreserve(CycleState(), POD, "a")
    assert log == ["Three.unreserve", "Two.unreserve", "One.unreserve"]
    assert [failure.plugin for failure in failures] == ["Two"]


async def settled(framework: Framework, clock: VirtualClock, *steps: Any) -> Status:
    waiting = asyncio.ensure_future(framework.wait_on_permit(POD))
    await asyncio.sleep(0)
    for step in steps:
        step()
        await asyncio.sleep(0)
    return await asyncio.wait_for(waiting, 1)


def permitting(*timeouts: tuple[str, float]) -> tuple[Framework, VirtualClock]:
    clock = VirtualClock()
    plugins = [recorder(name, Log(), permit=wait(seconds)) for name, seconds in timeouts]
    return framework_of(*plugins, handle=Handle(clock=clock)), clock


def test_permit_waits_until_every_plugin_that_asked_allows() -> None:
    framework, clock = permitting(("A", 10), ("B", 20))

    async def run() -> Status:
        status = framework.permit(CycleState(), POD, "a")
        assert (status.code, status.timeout_seconds) == (Code.WAIT, 10)
        assert framework.handle.waiting is not None
        held = framework.handle.waiting.get("p")
        assert held is not None
        assert held.pending_plugins == {"A", "B"}
        return await settled(
            framework, clock, lambda: held.allow("A"), lambda: clock.advance(15), lambda: held.allow("B")
        )

    assert asyncio.run(run()).code is Code.SUCCESS
    assert list(framework.handle.waiting or ()) == []


def test_the_shortest_time_out_ends_the_wait() -> None:
    framework, clock = permitting(("A", 90), ("B", 30))

    async def run() -> Status:
        framework.permit(CycleState(), POD, "a")
        return await settled(framework, clock, lambda: clock.advance(29), lambda: clock.advance(1))

    status = asyncio.run(run())
    assert (status.code, status.plugin) == (Code.UNSCHEDULABLE, "B")
    assert status.message == "rejected due to timeout after waiting 30s at plugin B"


def test_no_wait_is_longer_than_a_quarter_of_an_hour() -> None:
    framework, clock = permitting(("A", 10_000.0))

    async def run() -> Status:
        framework.permit(CycleState(), POD, "a")
        return await settled(framework, clock, lambda: clock.advance(15 * 60))

    assert asyncio.run(run()).message == "rejected due to timeout after waiting 15m0s at plugin A"


def test_one_plugin_can_reject_for_all() -> None:
    framework, clock = permitting(("A", 10), ("B", 20))

    async def run() -> Status:
        framework.permit(CycleState(), POD, "a")
        assert framework.handle.waiting is not None
        held = framework.handle.waiting.get("p")
        assert held is not None
        return await settled(framework, clock, lambda: held.reject("B", "no"), lambda: held.allow("A"))

    status = asyncio.run(run())
    assert (status.message, status.plugin) == ("no", "B")


def test_a_refusal_is_final_even_if_another_plugin_wants_to_wait() -> None:
    plugins = [recorder("A", Log(), permit=wait(5)), recorder("B", Log(), permit=unschedulable("no"))]
    framework = framework_of(*plugins, handle=Handle(clock=VirtualClock()))
    assert framework.permit(CycleState(), POD, "a").message == "no"
    assert asyncio.run(framework.wait_on_permit(POD)).code is Code.SUCCESS


def test_without_permit_plugins_there_is_nothing_to_wait_for() -> None:
    framework = framework_of()
    assert framework.permit(CycleState(), POD, "a") is SUCCESS
    assert asyncio.run(framework.wait_on_permit(POD)) is SUCCESS


def test_binders_may_skip_and_the_first_that_does_not_binds() -> None:
    log = Log()
    binders = [recorder("A", log, bind=SKIP), recorder("B", log, bind=None), recorder("C", log, bind=None)]
    assert asyncio.run(framework_of(*binders).bind(CycleState(), POD, "a")).code is Code.SUCCESS
    assert log == ["A.bind", "B.bind"]
    assert (
        asyncio.run(framework_of(recorder("A", log, bind=SKIP)).bind(CycleState(), POD, "a")).code
        is Code.SKIP
    )


def test_the_default_binder_asks_for_the_binding() -> None:
    class Written:
        effects: list[Effect] = []

        async def perform(self, effect: Effect) -> None:
            self.effects.append(effect)

    written = Written()
    status = asyncio.run(framework_of(handle=Handle(effects=written)).bind(CycleState(), POD, "a"))
    assert status.code is Code.SUCCESS
    assert written.effects == [BindPod(POD, "a")]


def test_an_engine_that_only_decides_cannot_bind() -> None:
    with pytest.raises(PluginError, match="nowhere to write BindPod to"):
        asyncio.run(framework_of().bind(CycleState(), POD, "a"))


def test_pre_bind_may_be_async_and_stops_at_the_first_failure() -> None:
    log = Log()

    class Slow:
        name = "Slow"

        async def pre_bind(self, cycle: CycleState, pod: object, node_name: str) -> None:
            await asyncio.sleep(0)
            log.append("Slow.pre_bind")

    plugins = [
        Slow(),
        recorder("No", log, pre_bind=unschedulable("no")),
        recorder("Late", log, pre_bind=None),
    ]
    status = asyncio.run(framework_of(*plugins).pre_bind(CycleState(), POD, "a"))
    assert (status.message, log) == ("no", ["Slow.pre_bind", "No.pre_bind"])


def test_post_bind_calls_all_plugins() -> None:
    log = Log()
    framework = framework_of(recorder("A", log, post_bind=None), recorder("B", log, post_bind=None))
    asyncio.run(framework.post_bind(CycleState(), POD, "a"))
    assert log == ["A.post_bind", "B.post_bind"]


@pytest.mark.parametrize("point", ["pre_enqueue", "pre_score", "reserve", "permit", "pre_bind", "bind"])
@pytest.mark.parametrize("answer", ["no", False, 5])
def test_where_a_status_is_wanted_nothing_else_will_do(point: str, answer: object) -> None:
    plugin = recorder("Odd", Log(), **{point: answer}, **({"score": None} if point == "pre_score" else {}))
    framework, cycle = framework_of(plugin, handle=Handle(clock=VirtualClock())), CycleState()
    arguments = {"pre_enqueue": (POD,), "pre_score": (cycle, POD, nodes("a"))}.get(point, (cycle, POD, "a"))
    ask = getattr(framework, "score" if point == "pre_score" else point)

    async def asked() -> None:
        result = ask(*arguments)
        if asyncio.iscoroutine(result):
            await result

    with pytest.raises(PluginError, match="return None, or a status such as"):
        asyncio.run(asked())


def test_a_refusal_needs_words() -> None:
    for reason in (5, ""):
        with pytest.raises(TypeError, match="a refusal needs a reason in words"):
            refuse_where(np.array([True]), reason)  # type: ignore[arg-type]
