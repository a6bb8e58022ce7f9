"""Exponential backoff by key."""

from __future__ import annotations

from collections.abc import Hashable

from moorage.backoff import backoff_seconds


class Retries:
    """Backoff before a retry: doubles each time, up to a limit.

    An entry expires after twice the longest wait without an attempt.
    """

    def __init__(self, first_seconds: float, longest_seconds: float) -> None:
        self._first = first_seconds
        self._longest = longest_seconds
        self._known: dict[Hashable, tuple[int, float]] = {}
        """The number of attempts and the time of the last, in seconds."""

    def wait(self, key: Hashable, now: float) -> float | None:
        """Remaining seconds to wait; None if it is due now, which counts as an attempt."""
        attempts, since = self._known.get(key, (0, now))
        if now - since > 2 * self._longest:
            attempts = 0
        due = since + backoff_seconds(attempts, self._first, self._longest) if attempts else now
        if now < due:
            return due - now
        # Removed first, so that the order is by the last attempt.
        self._known.pop(key, None)
        self._known[key] = (attempts + 1, now)
        self._forget(now)
        return None

    def _forget(self, now: float) -> None:
        for key, (_, since) in list(self._known.items()):
            if now - since <= 2 * self._longest:
                return
            del self._known[key]
