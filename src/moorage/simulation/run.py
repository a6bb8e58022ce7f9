"""One simulation from its start to its results."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from moorage.simulation.records import NodeRecord
from moorage.simulation.results import SimulationResult, result_of
from moorage.simulation.scenario import Scenario
from moorage.simulation.settings import Settings
from moorage.simulation.simulator import Simulation
from moorage.simulation.virtual_loop import run_in_virtual_time

Arrived = Callable[[Simulation], None]
"""Called after each pod of the workload."""


class SimulationRun(NamedTuple):
    """A simulation that has ended, or was interrupted."""

    result: SimulationResult
    nodes: Sequence[NodeRecord]


def _arrived(simulation: Simulation) -> None:
    """Shows no progress."""


def run_simulation(
    scenario: Scenario, settings: Settings, arrived: Arrived = _arrived, *, interruptible: bool = False
) -> SimulationRun:
    """Simulate a scenario in virtual time.

    interruptible: whether SIGINT ends it early, with the results up to then; only in the main thread.
    """
    return run_in_virtual_time(simulated(scenario, settings, arrived, interruptible=interruptible))


async def simulated(
    scenario: Scenario, settings: Settings, arrived: Arrived = _arrived, *, interruptible: bool = False
) -> SimulationRun:
    """The same, to be awaited in a `VirtualLoop`; when cancelled, with the results up to then."""
    simulation = Simulation(
        scenario.cluster,
        scenario.workload(settings.seed),
        settings,
        scenario.script,
        lambda: arrived(simulation),
    )
    running = asyncio.create_task(simulation.run())
    loop = asyncio.get_running_loop()
    if interruptible:
        loop.add_signal_handler(signal.SIGINT, running.cancel)
    with suppress(asyncio.CancelledError):
        await running
    if interruptible:
        loop.remove_signal_handler(signal.SIGINT)
    records = simulation.records
    return SimulationRun(result_of(records, settings.seed, is_complete=simulation.is_complete), records.nodes)
