"""How far a sweep is, while it runs."""

from __future__ import annotations

from moorage.cli.progress_display import ProgressDisplay, time_left


class SweepProgress(ProgressDisplay):
    """Shows how many simulations have ended."""

    def __init__(self, command: str, total: int, done: int) -> None:
        """done: the number of those whose results were there."""
        super().__init__(command)
        self._total, self._first, self._done = total, done, done

    def update(self) -> None:
        """One more has ended."""
        self._done += 1
        if self.is_due():
            share = (self._done - self._first) / (self._total - self._first)
            text = f"{self._done:,} of {self._total:,} simulations"
            self.show(", ".join([text, *time_left(share, self.elapsed_seconds)]), share)
