"""One simulation from its start to its results."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from moorage.scheduler.observers import Observer
from moorage.simulation.records import NodeRecord
from moorage.simulation.results import SimulationResult, result_of
from moorage.simulation.scenario import Scenario
from moorage.simulation.settings import Settings
from moorage.simulation.simulator import Simulation
from moorage.simulation.virtual_loop import run_in_virtual_time
from moorage.simulation.workload import Arrival

Progressed = Callable[[Simulation], None]
"""Called after each pod of the workload, and when one has ended."""
_INTERRUPTING: Final = (signal.SIGINT, signal.SIGTERM)


class SimulationRun(NamedTuple):
    """A simulation that has ended, or was interrupted."""

    result: SimulationResult
    nodes: Sequence[NodeRecord]
    interrupted_by: int | None = None
    """The number of the signal."""


def _progressed(simulation: Simulation) -> None:
    """Shows no progress."""


def run_simulation(
    scenario: Scenario,
    settings: Settings,
    progressed: Progressed = _progressed,
    *,
    interruptible: bool = False,
    observer: Observer | None = None,
) -> SimulationRun:
    """Simulate a scenario in virtual time.

    interruptible: whether SIGINT and SIGTERM end it early, with the results up to then; only in the main
        thread.
    observer: receives the scheduler's events.
    """
    workload = scenario.workload(settings.seed)  # It may sort a trace, which SIGINT must be able to end.
    return run_in_virtual_time(_run(scenario, workload, settings, progressed, interruptible, observer))


async def _run(
    scenario: Scenario,
    workload: Iterable[Arrival],
    settings: Settings,
    progressed: Progressed,
    interruptible: bool,
    observer: Observer | None,
) -> SimulationRun:
    simulation = Simulation(
        scenario.cluster,
        workload,
        settings,
        scenario.script,
        lambda: progressed(simulation),
        observer,
    )
    running = asyncio.create_task(simulation.run())
    received: list[int] = []
    signals = _INTERRUPTING if interruptible else ()
    with _interrupting(simulation, running, received, signals), suppress(asyncio.CancelledError):
        await running
    records = simulation.records
    result = result_of(records, settings.seed, is_complete=simulation.is_complete)
    return SimulationRun(result, records.nodes, received[0] if received else None)


@contextmanager
def _interrupting(
    simulation: Simulation,
    running: asyncio.Task[None],
    received: list[int],
    signals: Sequence[signal.Signals],
) -> Iterator[None]:
    """Have signals end a simulation, and note them.

    A signal is noticed between two pods that arrive at the same moment; a handler of the event loop would be
    called after the last of them.
    """
    loop = asyncio.get_running_loop()

    def interrupt(number: int, frame: object) -> None:
        received.append(number)
        simulation.is_interrupted = True
        loop.call_soon_threadsafe(running.cancel)

    before = {each: signal.signal(each, interrupt) for each in signals}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
