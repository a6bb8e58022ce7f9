"""One simulation from its start to its results."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from moorage.laptop_cluster import attribute
from moorage.simulation.records import NodeRecord, Records
from moorage.simulation.results import SimulationResult, result_of
from moorage.simulation.scenario import Scenario
from moorage.simulation.settings import Settings
from moorage.simulation.simulator import Simulation
from moorage.simulation.virtual_loop import run_in_virtual_time


class RunningSimulation(Protocol):
    """A simulation, with controllers or without."""

    records: Records
    is_complete: bool
    notes: list[str]
    """What is missing in the cluster, one line each."""

    @property
    def seconds(self) -> float:
        """Virtual time since the start, in seconds."""

    async def run(self) -> None:
        """Run to the end; when cancelled, what is known until then is kept."""


Arrived = Callable[[RunningSimulation], None]
"""Called after each pod of the workload."""


class SimulationRun(NamedTuple):
    """A simulation that has ended, or was interrupted."""

    result: SimulationResult
    nodes: Sequence[NodeRecord]
    notes: Sequence[str] = ()
    """What is missing in the cluster, one line each."""


def _arrived(simulation: RunningSimulation) -> None:
    """Shows no progress."""


def run_simulation(
    scenario: Scenario, settings: Settings, arrived: Arrived = _arrived, *, interruptible: bool = False
) -> SimulationRun:
    """Simulate a scenario in virtual time.

    interruptible: whether SIGINT ends it early, with the results up to then; only in the main thread.
    """
    return run_in_virtual_time(_run(scenario, settings, arrived, interruptible))


def _new_simulation(scenario: Scenario, settings: Settings, arrived: Callable[[], None]) -> RunningSimulation:
    workload = scenario.workload(settings.seed)
    if scenario.controlled is None:
        return Simulation(scenario.cluster, workload, settings, scenario.script, arrived)
    controlled = attribute("simulating.simulation", "ControlledSimulation")
    simulation: RunningSimulation = controlled(
        scenario.controlled, workload, settings, scenario.script, arrived
    )
    return simulation


async def _run(
    scenario: Scenario, settings: Settings, arrived: Arrived, interruptible: bool
) -> SimulationRun:
    simulation = _new_simulation(scenario, settings, lambda: arrived(simulation))
    running = asyncio.create_task(simulation.run())
    loop = asyncio.get_running_loop()
    if interruptible:
        loop.add_signal_handler(signal.SIGINT, running.cancel)
    with suppress(asyncio.CancelledError):
        await running
    if interruptible:
        loop.remove_signal_handler(signal.SIGINT)
    result = result_of(simulation.records, settings.seed, is_complete=simulation.is_complete)
    return SimulationRun(result, simulation.records.nodes, [*scenario.notes, *simulation.notes])
