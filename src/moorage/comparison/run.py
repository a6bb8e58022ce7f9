"""Several configurations on one scenario, one after another, each compared with the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from moorage.comparison.differences import bound_only_in, movers_of, moves_of, unmoved_count, waiting_changes
from moorage.comparison.node_use import node_changes
from moorage.comparison.observers import MoveObserver, RunObserver
from moorage.comparison.results import ComparedRun, Comparison, RunDifference
from moorage.simulation.run import Progressed, SimulationRun, run_simulation
from moorage.simulation.scenario import Scenario
from moorage.simulation.settings import Settings

TOP: Final = 5
"""Default number of pods and nodes with the largest changes that are listed."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A configuration that is compared, with the scenario as its version of Kubernetes has it."""

    name: str
    settings: Settings
    scenario: Scenario


class ComparedRuns(NamedTuple):
    """The results, and the runs themselves, by name."""

    comparison: Comparison
    runs: dict[str, SimulationRun]

    @property
    def interrupted_by(self) -> int | None:
        """The signal that ended a run, and left out those after it."""
        return next((run.interrupted_by for run in self.runs.values() if run.interrupted_by), None)


def compare_runs(
    variants: Sequence[Variant], progressed: Progressed, *, interruptible: bool = False, top: int = TOP
) -> ComparedRuns:
    """Simulate variants that have names of their own and the same seed, and compare each with the first.

    interruptible: whether SIGINT and SIGTERM end the run that goes on, and leave out those after it.
    """
    simulate = partial(run_simulation, progressed=progressed, interruptible=interruptible)
    first, *others = variants
    former = _FirstRun(first, simulate)
    runs, differences = {first.name: former.run}, []
    for variant in others:
        if not all(run.result.complete for run in runs.values()):
            break
        observer = former.observer_of_another()
        run = runs[variant.name] = simulate(variant.scenario, variant.settings, observer=observer)
        if run.result.complete:
            differences.append(former.difference(variant.name, run, observer, top))
    comparison = Comparison(
        complete=len(differences) == len(others),
        seed=first.settings.seed,
        runs=[_compared(each, runs[each.name]) for each in variants if each.name in runs],
        differences=differences,
    )
    return ComparedRuns(comparison, runs)


class _FirstRun:
    """The run that others are compared with."""

    def __init__(self, variant: Variant, simulate: Callable[..., SimulationRun]) -> None:
        observer = RunObserver()
        self.run = simulate(variant.scenario, variant.settings, observer=observer)
        self._variant, self._log = variant, observer.log
        self._pods = dict(observer.identities.records(self.run.result.placements))

    def observer_of_another(self) -> MoveObserver:
        """What follows another run."""
        nodes = {identity: pod.node for identity, pod in self._pods.items() if pod.bound_at is not None}
        return MoveObserver(self._variant.settings, self._log, nodes, self._variant.scenario.cluster)

    def difference(self, name: str, run: SimulationRun, observer: MoveObserver, top: int) -> RunDifference:
        """How another run differs, which has been followed by an observer."""
        former, pods = self._pods, dict(observer.identities.records(run.result.placements))
        moves = moves_of(former, pods, observer.attributions)
        return RunDifference(
            name=name,
            former=self._variant.name,
            unmoved=unmoved_count(former, pods),
            moved=len(moves),
            movers=movers_of(moves),
            first_difference=observer.first,
            waiting_seconds=waiting_changes(former, pods, top),
            nodes=node_changes(self.run, run),
            bound_only_before=bound_only_in(former, pods),
            bound_only_here=bound_only_in(pods, former),
            moves=moves,
        )


def _compared(variant: Variant, run: SimulationRun) -> ComparedRun:
    result = run.result
    return ComparedRun(
        name=variant.name,
        kubernetes_version=variant.settings.version.minor,
        complete=result.complete,
        seconds=result.seconds,
        pods=result.pods,
        failed_attempts=result.failed_attempts,
        waiting_seconds=result.waiting_seconds,
        pending=result.pending,
        utilisation=result.utilisation,
        cost=result.cost,
    )
