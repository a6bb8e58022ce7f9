"""How far a sweep is, while it runs."""

from __future__ import annotations

from time import monotonic
from typing import Final, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from moorage.config.duration import Duration

_LOG_SECONDS: Final = 10.0
"""Interval between lines about the progress where there is no terminal, in seconds."""


class SweepProgress:
    """Shows how many simulations have ended, on standard error: a bar on a terminal, lines otherwise."""

    def __init__(self, command: str, total: int, done: int) -> None:
        """done: the number of those whose results were there."""
        self._command = command
        self._total, self._first, self._done = total, done, done
        self._began_at = self._shown_at = monotonic()
        console = Console(stderr=True)
        self._bars: Bars | None = None
        if console.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            self._bars = Bars(*columns, console=console, transient=True)
            self._task = self._bars.add_task("simulations", total=total, completed=done)

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def update(self) -> None:
        """One more has ended."""
        self._done += 1
        if self._bars is not None:
            self._bars.update(self._task, completed=self._done)
        elif (now := monotonic()) - self._shown_at >= _LOG_SECONDS:
            self._shown_at = now
            each = (now - self._began_at) / (self._done - self._first)
            left = Duration(round(each * (self._total - self._done)))
            typer.echo(f"{self._command}: {self._done:,} of {self._total:,}, about {left} left", err=True)
