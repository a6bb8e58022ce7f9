"""`moorage chaos processes`: run campaigns over real processes, and report."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import typer

from moorage.api.decode import InputError
from moorage.cli.aligned_table import aligned
from moorage_cluster.chaos.quiet_logs import quiet
from moorage_cluster.chaos.real_processes.run import Outcome, run_plan
from moorage_cluster.chaos.real_processes.scenarios import SCENARIOS, Plan, new_plan, summaries
from moorage_cluster.cli.campaigns import RunProgress, ended_by_signals

_COMMAND: Final = "moorage chaos processes"
_FAILED: Final = 1
"""Exit status: something did not hold."""
_UNREADABLE: Final = 2
"""Exit status: the input could not be used."""
_INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit status: it was interrupted."""
_HEADER: Final = (
    "SCENARIO",
    "RUNS",
    "FAULTS",
    "WRITES",
    "PODS BOUND",
    "NEW LEADERS",
    "PROCESSES",
    "RECOVERY",
    "FAILED",
)
_OBSERVER: Final = "moorage"
"""The logger of the clients in this process, whose watches break all the time."""
_MEMORY_FIGURES: Final = Path("/proc/self/statm")
_LOGS: Final = ("*.log", "*.yaml")


@dataclass(frozen=True, slots=True)
class ProcessesOptions:
    """What is to be run."""

    runs: int
    seed: int
    scenarios: list[str]
    seconds: float
    failures: Path
    output: str
    lists: bool


class Tally(msgspec.Struct):
    """The runs of one scenario."""

    scenario: str
    runs: int = 0
    injected: dict[str, int] = {}
    """What was done to processes, and how often."""
    acknowledged: int = 0
    """Number of writes of users that were acknowledged."""
    bound: int = 0
    takeovers: int = 0
    starts: int = 0
    late: int = 0
    more_bytes: int = 0
    """By how much the memory of a process has grown that was never started again, at most."""
    more_files: int = 0
    recovery_seconds: float = 0.0
    """The longest time from the last fault until everything had come right."""
    failures: dict[int, list[str]] = {}
    """What did not hold, by seed."""

    def add(self, seed: int, outcome: Outcome) -> None:
        """Count a run."""
        self.runs += 1
        self.injected = dict(Counter(self.injected) + Counter(outcome.injected))
        self.acknowledged += outcome.acknowledged
        self.bound += outcome.bound
        self.takeovers += outcome.takeovers
        self.starts += outcome.starts
        self.late += outcome.late
        self.more_bytes = max(self.more_bytes, outcome.more_bytes)
        self.more_files = max(self.more_files, outcome.more_files)
        self.recovery_seconds = max(self.recovery_seconds, outcome.recovery_seconds)
        if outcome.violations:
            self.failures[seed] = outcome.violations


def run_chaos_processes(options: ProcessesOptions) -> None:
    """Run, and report; exits with 1 if something did not hold, 2 for bad input, 130 if interrupted."""
    if options.lists:
        typer.echo(aligned(("SCENARIO", "WHAT FAILS"), list(summaries())))
        return
    try:
        tallies, is_interrupted = _run(options)
    except InputError as error:
        _say(str(error))
        raise typer.Exit(_UNREADABLE) from None
    typer.echo(_report(tallies, options.output))
    if is_interrupted:
        _say("interrupted; the report has what was run until then")
        raise typer.Exit(_INTERRUPTED)
    if any(each.failures for each in tallies):
        raise typer.Exit(_FAILED)


def _say(line: str) -> None:
    typer.echo(f"{_COMMAND}: {line}", err=True)


def _run(options: ProcessesOptions) -> tuple[list[Tally], bool]:
    """What was run, and whether it was interrupted."""
    plans = _plans(options)
    tallies = {plan.scenario: Tally(plan.scenario) for plan in plans}
    try:
        with RunProgress(_COMMAND, len(plans)) as progress, ended_by_signals(), quiet(_OBSERVER):
            for plan in plans:
                outcome = _played(plan, options.failures)
                tallies[plan.scenario].add(plan.seed, outcome)
                progress.update(1, bool(outcome.violations), f"{plan.scenario} {plan.seed}")
    except KeyboardInterrupt:
        return list(tallies.values()), True
    return list(tallies.values()), False


def _plans(options: ProcessesOptions) -> list[Plan]:
    """All runs; InputError if they cannot be made here.

    The scenarios take turns, so that a campaign that is stopped early has seen all of them.
    """
    if not _MEMORY_FIGURES.exists():
        raise InputError("", f"it needs Linux: there is no {_MEMORY_FIGURES}")
    for name in options.scenarios:
        if name not in SCENARIOS:
            raise InputError("--scenario", f"there is no {name!r}; there are {', '.join(SCENARIOS)}")
    return [
        new_plan(name, seed, options.seconds)
        for seed in range(options.seed, options.seed + options.runs)
        for name in options.scenarios or SCENARIOS
    ]


def _played(plan: Plan, failures: Path) -> Outcome:
    """Run a plan; the logs of one that fails are kept."""
    with TemporaryDirectory(prefix="moorage-chaos-") as name:
        directory = Path(name)
        outcome = run_plan(plan, directory)
        if outcome.violations:
            _keep(plan, outcome, directory, failures)
    return outcome


def _keep(plan: Plan, outcome: Outcome, directory: Path, failures: Path) -> None:
    kept = failures / f"processes-{plan.scenario}-{plan.seed}"
    try:
        kept.mkdir(parents=True, exist_ok=True)
        for pattern in _LOGS:
            for path in directory.glob(pattern):
                shutil.copy(path, kept)
        for what, value in (("plan", plan), ("outcome", outcome)):
            encoded = msgspec.json.format(msgspec.json.encode(value))
            (kept / f"{what}.json").write_bytes(encoded + b"\n")
    except OSError as error:
        raise InputError(str(kept), f"cannot be written: {error.strerror or error}") from None
    again = f"--scenario {plan.scenario} --seed {plan.seed} --seconds {plan.seconds:g}"
    _say(f"{outcome.violations[0]} ({_COMMAND} {again}; logs are in {kept})")


def _report(tallies: list[Tally], output: str) -> str:
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(tallies)).decode()
    rows = [
        (
            each.scenario,
            f"{each.runs:,}",
            f"{sum(each.injected.values()):,}",
            f"{each.acknowledged:,}",
            f"{each.bound:,}",
            f"{each.takeovers:,}",
            f"{each.starts:,}",
            f"{each.recovery_seconds:.1f} s",
            str(len(each.failures)),
        )
        for each in tallies
    ]
    return aligned(_HEADER, rows)
