"""One simulation from its start to its results."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple, Protocol

from moorage.laptop_cluster import attribute
from moorage.scheduler.observers import Observer
from moorage.simulation.records import NodeRecord, Records
from moorage.simulation.results import SimulationResult, result_of
from moorage.simulation.scenario import Scenario
from moorage.simulation.settings import Settings
from moorage.simulation.simulator import Simulation
from moorage.simulation.virtual_loop import run_in_virtual_time
from moorage.simulation.workload import Arrival

_INTERRUPTING: Final = (signal.SIGINT, signal.SIGTERM)


class RunningSimulation(Protocol):
    """A simulation, with controllers or without."""

    records: Records
    is_complete: bool
    is_interrupted: bool
    """Set before it is cancelled: no more pods arrive, not even those of this moment."""
    arrived: int
    """Number of objects of the workload so far."""
    notes: list[str]
    """What is missing in the cluster, one line each."""

    @property
    def seconds(self) -> float:
        """Virtual time since the start, in seconds."""

    async def run(self) -> None:
        """Run to the end; when cancelled, what is known until then is kept."""


Progressed = Callable[[RunningSimulation], None]
"""Called after each pod of the workload, and when one has ended."""


class SimulationRun(NamedTuple):
    """A simulation that has ended, or was interrupted."""

    result: SimulationResult
    nodes: Sequence[NodeRecord]
    notes: Sequence[str] = ()
    """What is missing in the cluster, one line each."""
    interrupted_by: int | None = None
    """The number of the signal."""


def _progressed(simulation: RunningSimulation) -> None:
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
    return run_in_virtual_time(
        simulated(scenario, workload, settings, progressed, interruptible=interruptible, observer=observer)
    )


def _new_simulation(
    scenario: Scenario,
    workload: Iterable[Arrival],
    settings: Settings,
    progressed: Callable[[], None],
    observer: Observer | None,
) -> RunningSimulation:
    if scenario.controlled is None:
        return Simulation(scenario.cluster, workload, settings, scenario.script, progressed, observer)
    controlled = attribute("simulating.simulation", "ControlledSimulation")
    simulation: RunningSimulation = controlled(
        scenario.controlled, workload, settings, scenario.script, progressed, observer
    )
    return simulation


async def simulated(
    scenario: Scenario,
    workload: Iterable[Arrival],
    settings: Settings,
    progressed: Progressed = _progressed,
    *,
    interruptible: bool = False,
    observer: Observer | None = None,
) -> SimulationRun:
    """The same, to be awaited in a `VirtualLoop`; when cancelled, with the results up to then."""
    simulation = _new_simulation(scenario, workload, settings, lambda: progressed(simulation), observer)
    running = asyncio.create_task(simulation.run())
    received: list[int] = []
    signals = _INTERRUPTING if interruptible else ()
    with _interrupting(simulation, running, received, signals), suppress(asyncio.CancelledError):
        await running
    records = simulation.records
    result = result_of(records, settings.seed, is_complete=simulation.is_complete)
    notes = *scenario.notes, *simulation.notes
    return SimulationRun(result, records.nodes, notes, received[0] if received else None)


@contextmanager
def _interrupting(
    simulation: RunningSimulation,
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
