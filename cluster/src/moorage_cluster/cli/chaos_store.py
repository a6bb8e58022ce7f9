"""`moorage chaos store`: run a campaign against the API server's data directory, and report."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Final

import msgspec
import typer

from moorage.cli.aligned_table import aligned
from moorage.cli.progress_display import ProgressDisplay, time_left
from moorage_cluster.chaos.durability.campaign import CHECKS, Scale, run_campaign, tasks
from moorage_cluster.chaos.durability.recording_vfs import NoRecording
from moorage_cluster.chaos.durability.report import Result

_COMMAND: Final = "moorage chaos store"
_FAILED: Final = 1
"""Exit status: something did not hold."""
_UNUSABLE: Final = 2
"""Exit status: the input or this Python cannot be used."""
_INTERRUPTED: Final = 128 + signal.SIGINT
"""Exit status: it was interrupted."""
_HEADER: Final = ("CHECK", "CASES", "FAILED", "OUTCOMES")
SCALE: Final = Scale()
_MAX_PROBLEMS: Final = 10
"""Number of problems of a check that are printed."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What is to be run."""

    rounds: int
    seed: int
    checks: list[str]
    jobs: int | None
    output: str
    lists: bool


def run_chaos_store(options: StoreOptions) -> None:
    """Run, and report; exits with 1 if something did not hold, 2 for bad input, 130 if interrupted."""
    if options.lists:
        typer.echo(aligned(("CHECK", "WHAT FAILS"), [(name, each.summary) for name, each in CHECKS.items()]))
        return
    for name in options.checks:
        if name not in CHECKS:
            _say(f"--check: there is no {name!r}; there are {', '.join(CHECKS)}")
            raise typer.Exit(_UNUSABLE)
    try:
        _run(options)
    except NoRecording as error:
        _say(str(error))
        raise typer.Exit(_UNUSABLE) from None


def _say(line: str) -> None:
    typer.echo(f"{_COMMAND}: {line}", err=True)


def _run(options: StoreOptions) -> None:
    names = options.checks or list(CHECKS)
    results = {name: Result(name) for name in names}
    todo = list(tasks(names, options.seed, options.rounds, SCALE))
    is_interrupted = False
    with _Progress(len(todo)) as progress:
        try:
            for part in run_campaign(todo, options.jobs or os.cpu_count() or 1):
                results[part.check].merge(part)
                progress.update(part)
        except KeyboardInterrupt:
            is_interrupted = True
    typer.echo(_report(list(results.values()), options.output))
    for each in results.values():
        for problem in each.problems[:_MAX_PROBLEMS]:
            _say(f"{problem.text} ({_COMMAND} --check {each.check} --seed {problem.seed})")
    if is_interrupted:
        _say("interrupted; the report has what was run until then")
        raise typer.Exit(_INTERRUPTED)
    if any(each.problems for each in results.values()):
        raise typer.Exit(_FAILED)


def _report(results: list[Result], output: str) -> str:
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(results)).decode()
    rows = [
        (each.check, f"{each.cases:,}", str(len(each.problems)), _outcomes(each.outcomes)) for each in results
    ]
    return aligned(_HEADER, rows)


def _outcomes(outcomes: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in outcomes.items())


class _Progress(ProgressDisplay):
    """Shows how many cases were looked at."""

    def __init__(self, tasks: int) -> None:
        super().__init__(_COMMAND)
        self._tasks = tasks
        self._done = self._cases = self._failed = 0

    def update(self, part: Result) -> None:
        """Some more have ended."""
        self._done += 1
        self._cases += part.cases
        self._failed += len(part.problems)
        if self.is_due():
            share = self._done / self._tasks
            text = f"{self._cases:,} cases, {self._failed} failed"
            self.show(", ".join([text, *time_left(share, self.elapsed_seconds)]), share)
