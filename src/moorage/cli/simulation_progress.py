"""How far a simulation is, while it runs."""

from __future__ import annotations

from time import monotonic
from typing import Final, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from moorage.config.duration import Duration
from moorage.simulation.run import RunningSimulation

_BAR_SECONDS: Final = 0.5
"""Update interval of the progress, in seconds."""
_LOG_SECONDS: Final = 10.0
"""Interval between lines about the progress where there is no terminal, in seconds."""


class SimulationProgress:
    """Shows how far a simulation is, on standard error: a bar on a terminal, lines otherwise."""

    def __init__(self, command: str, total: int) -> None:
        """total: the number of pods that arrive; 0 if it is not known."""
        self._command = command
        self._total = total
        self._arrived = 0
        self._shown_at = monotonic()
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
            self._task = self._bars.add_task("pods", total=total or None)

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def update(self, simulation: RunningSimulation) -> None:
        """One more pod has arrived."""
        self._arrived += 1
        now = monotonic()
        if now - self._shown_at < (_LOG_SECONDS if self._bars is None else _BAR_SECONDS):
            return
        self._shown_at = now
        passed = Duration(round(simulation.seconds))
        if self._bars is not None:
            self._bars.update(self._task, completed=self._arrived, description=f"simulated {passed}")
        else:
            total = f" of {self._total:,}" if self._total else ""
            typer.echo(f"{self._command}: {self._arrived:,}{total} pods, simulated {passed}", err=True)
