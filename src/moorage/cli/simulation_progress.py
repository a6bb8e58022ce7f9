"""How far a simulation is, or several one after another, while they run."""

from __future__ import annotations

from moorage.cli.progress_display import ProgressDisplay, time_left
from moorage.config.duration import Duration
from moorage.simulation.run import RunningSimulation


class SimulationProgress(ProgressDisplay):
    """Shows how far simulations are, by pods or by time."""

    def __init__(self, command: str, total: int, until_seconds: float | None = None, runs: int = 1) -> None:
        """total: the number of pods that arrive in all runs; 0 if it is not known.

        until_seconds: when a simulation ends; None: when nothing is going to change any more.
        runs: the number of simulations.
        """
        super().__init__(command)
        self._total = total
        self._until_seconds = until_seconds
        self._runs = runs
        self._run: RunningSimulation | None = None
        self._ended_runs = 0
        self._arrived_before = 0
        """Number of pods that have arrived in runs that have ended."""

    def update(self, simulation: RunningSimulation) -> None:
        """One more pod has arrived, or has ended."""
        if simulation is not self._run:
            if self._run is not None:
                self._ended_runs += 1
                self._arrived_before += self._run.arrived
            self._run = simulation
        if self.is_due():
            arrived, seconds = self._arrived_before + simulation.arrived, simulation.seconds
            self.show(self.text(arrived, seconds, self.elapsed_seconds), self.share(arrived, seconds))

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
        parts += time_left(share, elapsed_seconds)
        if share is None and not self._total:
            parts.append("how many are to come is not known")
        elif share is None:
            parts.append("all have arrived, and some still run")
        return ", ".join(parts)
