"""Batch windows: work that is cheaper in batches is batched while it is frequent, else done at once."""

from __future__ import annotations

from typing import Final

MAX_UNBATCHED: Final = 8
"""Number of pieces of work in a row before batching starts."""


class BatchWindow:
    """Computes how long to wait for a batch: until the end of the window, if every window has work."""

    def __init__(self, window_seconds: float) -> None:
        self._window_seconds = window_seconds
        self._next = 0.0

    def wait_seconds(self, now: float) -> float:
        """Seconds to wait before doing a piece of work; 0.0 if there was little recently."""
        self._next = max(self._next, now - MAX_UNBATCHED * self._window_seconds) + self._window_seconds
        return max(self._next - now, 0.0)
