"""How far long work is, on standard error: a bar on a terminal, lines otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Final, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from moorage.config.duration import Duration

_BAR_SECONDS: Final = 0.5
"""Update interval of a bar, in seconds."""
_LOG_SECONDS: Final = 10.0
"""Interval between lines where there is no terminal, in seconds."""
_MIN_SHARE: Final = 0.01
"""The share of the work from which on there is an estimate."""


class ProgressDisplay:
    """Shows what is said of some work, now and then."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._began_at = self._shown_at = monotonic()
        console = Console(stderr=True)
        self._bar: Progress | None = None
        if console.is_terminal:
            columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def elapsed_seconds(self) -> float:
        """Time since the beginning."""
        return monotonic() - self._began_at

    def is_due(self) -> bool:
        """Whether it is time to show something."""
        now = monotonic()
        if now - self._shown_at < (_LOG_SECONDS if self._bar is None else _BAR_SECONDS):
            return False
        self._shown_at = now
        return True

    def show(self, text: str, share: float | None) -> None:
        """Show how far the work is; share: the part that is done, None if that is not known."""
        if self._bar is None:
            typer.echo(f"{self._command}: {text}", err=True)
        else:
            total = None if share is None else 1.0
            self._bar.update(self._task, completed=share or 0.0, total=total, description=text)


def time_left(share: float | None, elapsed_seconds: float) -> Iterator[str]:
    """An estimate of what is left, if there is one: the rest takes as long as what is done, by its share."""
    if share is not None and share >= _MIN_SHARE:
        left = round(elapsed_seconds * (1 - share) / share)
        yield f"about {Duration(left)} left"
