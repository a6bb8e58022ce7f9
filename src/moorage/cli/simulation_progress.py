"""How far a simulation is, or several one after another, while they run."""

from __future__ import annotations

from time import monotonic
from typing import Final, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from moorage.config.duration import Duration
from moorage.simulation.run import RunningSimulation

_BAR_SECONDS: Final = 0.5
"""Update interval of the progress, in seconds."""
_LOG_SECONDS: Final = 10.0
"""Interval between lines about the progress where there is no terminal, in seconds."""
_MIN_SHARE: Final = 0.01
"""The share of the work from which on there is an estimate."""


class SimulationProgress:
    """Shows how far a simulation is, on standard error: a bar on a terminal, lines otherwise."""

    def __init__(self, command: str, total: int, until_seconds: float | None = None, runs: int = 1) -> None:
        """total: the number of pods that arrive in all runs; 0 if it is not known.

        until_seconds: when a simulation ends; None: when nothing is going to change any more.
        runs: the number of simulations.
        """
        self._command = command
        self._total = total
        self._until_seconds = until_seconds
        self._runs = runs
        self._run: RunningSimulation | None = None
        self._ended_runs = 0
        self._arrived_before = 0
        """Number of pods that have arrived in runs that have ended."""
        self._began_at = self._shown_at = monotonic()
        console = Console(stderr=True)
        self._bars: Bars | None = None
        if console.is_terminal:
            columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
            self._bars = Bars(*columns, console=console, transient=True)
            self._task = self._bars.add_task("simulating", total=1.0 if total or until_seconds else None)

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def update(self, simulation: RunningSimulation) -> None:
        """One more pod has arrived, or has ended."""
        if simulation is not self._run:
            if self._run is not None:
                self._ended_runs += 1
                self._arrived_before += self._run.arrived
            self._run = simulation
        now = monotonic()
        if now - self._shown_at < (_LOG_SECONDS if self._bars is None else _BAR_SECONDS):
            return
        self._shown_at = now
        arrived = self._arrived_before + simulation.arrived
        share = self.share(arrived, simulation.seconds)
        text = self.text(arrived, simulation.seconds, now - self._began_at)
        if self._bars is not None:
            self._bars.update(self._task, completed=share or 0.0, description=text)
        else:
            typer.echo(f"{self._command}: {text}", err=True)

    def share(self, arrived: int, seconds: float) -> float | None:
        """The share of the work that is done, of pods or of time; None if that cannot be said."""
        if self._until_seconds:
            return (self._ended_runs + min(seconds / self._until_seconds, 1.0)) / self._runs
        return arrived / self._total if arrived < self._total else None

    def text(self, arrived: int, seconds: float, elapsed_seconds: float) -> str:
        """What is known."""
        of = f" of {self._total:,}" if self._total else ""
        parts = [f"{arrived:,}{of} pods", f"simulated {Duration(round(seconds))}"]
        share = self.share(arrived, seconds)
        if share is not None and share >= _MIN_SHARE:
            left = round(elapsed_seconds * (1 - share) / share)
            parts.append(f"about {Duration(left)} left")
        elif share is None and not self._total:
            parts.append("how many are to come is not known")
        elif share is None:
            parts.append("all have arrived, and some still run")
        return ", ".join(parts)
