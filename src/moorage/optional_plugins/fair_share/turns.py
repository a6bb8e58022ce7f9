"""Exceptions from the order by share, so that no owner waits for ever.

An owner whose attempt failed keeps its small share, and would be first again: it comes after the others until
a pod finds a node, or room appears. And where an owner's pods end as fast as they start, its share may stay
below that of others for ever: an owner that has waited for many decisions comes first.
"""

from __future__ import annotations

from collections.abc import Container, Sized
from typing import Final, Protocol

PATIENCE: Final = 100
"""Number of decisions for each owner with pods in the queue after which one that had none comes first."""
_MAX_ABSENT: Final = 64
"""Number of owners without pods in the queue that may be kept besides those that have some."""
_OVERDUE: Final = -(1 << 62)


class Owners(Container[str], Sized, Protocol):
    """The owners that have pods in the queue."""


class Turns:
    """Which owners come before or after those that are sorted by their share."""

    def __init__(self) -> None:
        self._decisions = 0
        self._waiting: dict[str, int] = {}
        """Since which decision each owner waits, the longest first."""
        self._overdue: dict[str, int] = {}
        """Those of the owners that have waited too long."""
        self._failed: dict[str, int] = {}
        """The last failed attempt of each owner since a pod found a node, or room appeared."""
        self.changed: set[str] = set()
        """The owners whose ranks have changed since this was emptied."""

    def rank(self, owner: str) -> int:
        """The place of an owner that has pods in the queue: 0, less before and more after the others."""
        since = self._overdue.get(owner)
        if since is not None:
            return _OVERDUE + since
        self._waiting.setdefault(owner, self._decisions)
        return self._failed.get(owner, 0)

    def popped(self, owner: str, *, failed: bool) -> None:
        """An owner had an attempt."""
        self._decisions += 1
        self._waiting.pop(owner, None)
        self._overdue.pop(owner, None)
        self.changed.add(owner)
        if failed:
            self._failed.pop(owner, None)
            self._failed[owner] = self._decisions
        else:
            self.room_appeared()

    def room_appeared(self) -> None:
        """Earlier failures say nothing any more."""
        if self._failed:
            self.changed.update(self._failed)
            self._failed.clear()

    def renew(self, owners: Owners) -> None:
        """Determine who has waited too long, of the owners with pods in the queue."""
        waiting, limit = self._waiting, self._decisions - PATIENCE * len(owners)
        while waiting:
            owner = next(iter(waiting))
            since = waiting[owner]
            if owner not in owners:
                del waiting[owner]
            elif since >= limit:
                break
            else:
                del waiting[owner]
                self._overdue[owner] = since
                self.changed.add(owner)
        if len(waiting) + len(self._failed) + len(self._overdue) > 3 * len(owners) + _MAX_ABSENT:
            self._forget_absent(owners)

    def _forget_absent(self, owners: Owners) -> None:
        """Forget owners without pods in the queue, which are many of those known."""
        for each in (self._waiting, self._failed, self._overdue):
            for owner in [owner for owner in each if owner not in owners]:
                del each[owner]
