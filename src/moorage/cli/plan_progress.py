"""How far a plan is, while it is made; Ctrl-C ends it between two steps."""

from __future__ import annotations

import signal
from time import monotonic
from types import FrameType
from typing import Any, Final, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from moorage.planning.results import Interrupted

_BAR_SECONDS: Final = 0.5
"""Update interval of the progress, in seconds."""
_LOG_SECONDS: Final = 10.0
"""Interval between lines about the progress where there is no terminal, in seconds."""


class PlanProgress:
    """Shows how far a plan is, on standard error: a bar on a terminal, lines otherwise."""

    def __init__(self, command: str, noun: str) -> None:
        """noun: what is counted."""
        self._command = command
        self._noun = noun
        self._shown_at = monotonic()
        self._is_interrupted = False
        self._before: Any = None
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
            self._task = self._bars.add_task(noun, total=None)

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        signal.signal(signal.SIGINT, self._before)
        if self._bars is not None:
            self._bars.stop()

    def update(self, done: int, total: int) -> None:
        """A step is done; Interrupted after Ctrl-C."""
        if self._is_interrupted:
            raise Interrupted
        now = monotonic()
        if now - self._shown_at < (_LOG_SECONDS if self._bars is None else _BAR_SECONDS):
            return
        self._shown_at = now
        if self._bars is not None:
            self._bars.update(self._task, completed=done, total=total or None)
        else:
            of_all = f" of {total:,}" if total else ""
            typer.echo(f"{self._command}: {done:,}{of_all} {self._noun}", err=True)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """The first Ctrl-C ends the plan after the present step, the second one at once."""
        self._is_interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
