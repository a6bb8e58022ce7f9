"""When to do what costs less for many at once: now if it is rare, in a rhythm if it is frequent."""

from __future__ import annotations

from typing import Final

AT_ONCE: Final = 8
"""So much may happen in a row before anybody has to wait."""


class Rhythm:
    """Tells how long to wait for others: until the next beat, if there is something to do at every beat."""

    def __init__(self, beat_seconds: float) -> None:
        self._beat_seconds = beat_seconds
        self._next = 0.0

    def wait_seconds(self, now: float) -> float:
        """How long to wait before doing something, which is then done; 0.0 if there was little of late."""
        self._next = max(self._next, now - AT_ONCE * self._beat_seconds) + self._beat_seconds
        return max(self._next - now, 0.0)
