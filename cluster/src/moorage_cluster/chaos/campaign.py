"""Many runs, in several processes: each from a scenario and a seed; those that fail are shortened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from moorage_cluster.chaos.processes import in_processes
from moorage_cluster.chaos.run import Outcome, run_script
from moorage_cluster.chaos.scenarios import new_script
from moorage_cluster.chaos.script import Script
from moorage_cluster.chaos.shrinking import shrunk


class Failure(msgspec.Struct, frozen=True):
    """A run in which something did not hold, and the shortest script that was found to show it."""

    scenario: str
    seed: int
    violations: list[str]
    script: Script


class Tally(msgspec.Struct):
    """The runs of one scenario."""

    scenario: str
    runs: int = 0
    bound: int = 0
    """Number of pods that were bound."""
    seconds: float = 0.0
    """Virtual time."""
    injected: dict[str, int] = {}
    """What went wrong, and how often."""
    failures: list[Failure] = []

    def add(self, outcome: Outcome) -> None:
        """Count a run."""
        self.runs += 1
        self.bound += outcome.bound
        self.seconds += outcome.seconds
        self.injected = dict(Counter(self.injected) + Counter(outcome.injected))

    def merge(self, other: Tally) -> None:
        """Count the runs of another tally."""
        self.runs += other.runs
        self.bound += other.bound
        self.seconds += other.seconds
        self.injected = dict(Counter(self.injected) + Counter(other.injected))
        self.failures += other.failures


class Task(msgspec.Struct, frozen=True):
    """One run."""

    scenario: str
    seed: int
    shrinks: bool


def tasks(scenarios: Sequence[str], first_seed: int, runs: int, *, shrinks: bool) -> Iterator[Task]:
    """All runs: the scenarios take turns, so that a campaign that is stopped early has seen all of them."""
    for seed in range(first_seed, first_seed + runs):
        for scenario in scenarios:
            yield Task(scenario, seed, shrinks)


def do(task: Task) -> Tally:
    """A run, as the tally of its scenario."""
    tally, script = Tally(task.scenario), new_script(task.scenario, task.seed)
    outcome = run_script(script)
    tally.add(outcome)
    if not outcome.is_well:
        if task.shrinks:
            script = shrunk(script, partial(_fails_alike, outcome))
            outcome = run_script(script)
        tally.failures.append(Failure(task.scenario, task.seed, outcome.violations, script))
    return tally


def _fails_alike(outcome: Outcome, script: Script) -> bool:
    """Whether a script shows one of the violations of an outcome, be it about other objects."""
    return not outcome.kinds.isdisjoint(run_script(script).kinds)


def run_campaign(
    scenarios: Sequence[str], first_seed: int, runs: int, processes: int, *, shrinks: bool = True
) -> Iterator[Tally]:
    """The tallies of tasks, as they end; runs: of each scenario."""
    return in_processes(do, tasks(scenarios, first_seed, runs, shrinks=shrinks), processes)
