"""Pre-bind plugins: who runs with whom, and what ends them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from moorage.api.pod import Pod
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.extension_points import IN_PARALLEL, SKIP_IN_PARALLEL, PreFlight
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.status import SKIP, SUCCESS, PluginError, Status, unschedulable
from moorage.framework.runtime.framework import Framework
from tests.framework.helpers import POD, framework_of

ALONE = PreFlight()


class Worker:
    """A plugin that tells when it begins and ends, and ends when it is let go."""

    def __init__(self, name: str, pre_flight: PreFlight | Status | None) -> None:
        self.name = name
        self._pre_flight = pre_flight
        self.let_go: asyncio.Future[Status | None] | None = None

    def pre_bind_pre_flight(self, cycle: CycleState, pod: Pod, node_name: str) -> PreFlight | Status | None:
        return self._pre_flight

    async def pre_bind(self, cycle: CycleState, pod: Pod, node_name: str) -> Status | None:
        self.let_go = asyncio.get_running_loop().create_future()
        try:
            return await self.let_go
        finally:
            self.let_go = None


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(5):
        await asyncio.sleep(0)


def at_work(workers: list[Worker]) -> str:
    return "".join(worker.name for worker in workers if worker.let_go is not None)


def begin(workers: list[Worker]) -> tuple[Framework, Coroutine[Any, Any, Status]]:
    framework = framework_of(*workers, handle=Handle())
    cycle = CycleState()
    framework.pre_bind_pre_flight(cycle, POD, "a")
    return framework, framework.pre_bind(cycle, POD, "a")


GROUPS: dict[str, tuple[dict[str, PreFlight | Status | None], list[str]]] = {
    "who does not allow it runs alone": ({"A": None, "B": ALONE, "C": None}, ["A", "B", "C"]),
    "neighbours that allow it run together": ({"A": IN_PARALLEL, "B": IN_PARALLEL}, ["AB"]),
    "who does not allow it parts its neighbours": (
        {"A": IN_PARALLEL, "B": ALONE, "C": IN_PARALLEL, "D": IN_PARALLEL},
        ["A", "B", "CD"],
    ),
    "and does so even if it is skipped": ({"A": IN_PARALLEL, "B": SKIP, "C": IN_PARALLEL}, ["A", "C"]),
    "unless it allows it": ({"A": IN_PARALLEL, "B": SKIP_IN_PARALLEL, "C": IN_PARALLEL}, ["AC"]),
    "nobody has anything to do": ({"A": SKIP, "B": SKIP_IN_PARALLEL}, []),
}


@pytest.mark.parametrize(("plugins", "groups"), GROUPS.values(), ids=GROUPS.keys())
def test_pre_binds_that_run_in_parallel(
    plugins: dict[str, PreFlight | Status | None], groups: list[str]
) -> None:
    async def run() -> None:
        workers = [Worker(name, answer) for name, answer in plugins.items()]
        framework, work = begin(workers)
        running = asyncio.ensure_future(work)
        for group in groups:
            await settle()
            assert at_work(workers) == group
            assert framework.handle.pre_binding.running == len(group)
            for worker in workers:
                if worker.let_go is not None:
                    worker.let_go.set_result(None)
        assert await running is SUCCESS
        assert framework.handle.pre_binding.running == 0

    asyncio.run(run())


def test_the_first_refusal_ends_the_others_and_nothing_begins_after_it() -> None:
    async def run() -> None:
        workers = [Worker("A", IN_PARALLEL), Worker("B", IN_PARALLEL), Worker("C", None)]
        _, work = begin(workers)
        running = asyncio.ensure_future(work)
        await settle()
        assert workers[1].let_go is not None
        workers[1].let_go.set_result(unschedulable("no"))
        status = await running
        assert (status.plugin, status.message, at_work(workers)) == ("B", "no", "")

    asyncio.run(run())


def test_the_first_failure_ends_the_others() -> None:
    async def run() -> None:
        workers = [Worker("A", IN_PARALLEL), Worker("B", IN_PARALLEL)]
        _, work = begin(workers)
        running = asyncio.ensure_future(work)
        await settle()
        assert workers[0].let_go is not None
        workers[0].let_go.set_exception(RuntimeError("oops"))
        with pytest.raises(PluginError, match='running PreBind plugin "A": RuntimeError: oops'):
            await running
        assert at_work(workers) == ""

    asyncio.run(run())


def test_a_pod_that_is_stopped_ends_all_that_runs_for_it() -> None:
    async def run() -> None:
        workers = [Worker("A", IN_PARALLEL), Worker("B", IN_PARALLEL), Worker("C", None)]
        framework, work = begin(workers)
        running = asyncio.ensure_future(work)
        await settle()
        assert framework.handle.pre_binding.stop(POD.uid, "preempted by P")
        with pytest.raises(PluginError, match='running PreBind plugin "A": preempted by P'):
            await running
        assert at_work(workers) == ""
        assert not framework.handle.pre_binding.stop(POD.uid, "again")

    asyncio.run(run())


def test_when_the_scheduler_ends_so_does_everything() -> None:
    async def run() -> None:
        workers = [Worker("A", IN_PARALLEL), Worker("B", IN_PARALLEL)]
        _, work = begin(workers)
        running = asyncio.ensure_future(work)
        await settle()
        running.cancel()
        await settle()
        assert running.cancelled()
        assert at_work(workers) == ""

    asyncio.run(run())
