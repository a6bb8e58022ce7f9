"""Waiting longer and longer before doing the same thing again."""

from __future__ import annotations

from collections.abc import Hashable


class Retries:
    """How long to wait before something is done once more: each time twice as long, up to a limit.

    After twice the longest wait without a try, all is forgotten.
    """

    def __init__(self, first_seconds: float, longest_seconds: float) -> None:
        self._first = first_seconds
        self._longest = longest_seconds
        self._known: dict[Hashable, tuple[float, float]] = {}

    def wait(self, key: Hashable, now: float) -> float | None:
        """How long to wait still; None if it is to be done now, which counts as a try."""
        wait, since = self._known.get(key, (0.0, now))
        if now - since > 2 * self._longest:
            wait = 0.0
        if now - since < wait:
            return since + wait - now
        # Taken out first, so that those tried longest ago come first.
        self._known.pop(key, None)
        self._known[key] = (min(self._longest, wait * 2) if wait else self._first, now)
        self._forget(now)
        return None

    def _forget(self, now: float) -> None:
        for key, (_, since) in list(self._known.items()):
            if now - since <= 2 * self._longest:
                return
            del self._known[key]
