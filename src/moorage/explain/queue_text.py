"""Where a pod is in a running scheduler's queue, as text."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from moorage.client.scheduler_api import QueueEntry

_MAX_SHOWN_EVENTS: Final = 4


def queue_line(entry: QueueEntry, now: datetime) -> str:
    """One line: the place of a pod in the queue, since when, and what it waits for."""
    attempts = "1 attempt" if entry.attempts == 1 else f"{entry.attempts} attempts"
    line = f"in the scheduler's queue: {entry.place} for {age(now, entry.since)}, {attempts}"
    if entry.gated_by:
        line += f", gated by {entry.gated_by}"
    if entry.next_attempt is not None:
        line += f", next try in {age(entry.next_attempt, now)}"
    events = awaited_events(entry)
    return f"{line}; woken by {events}" if events else line


def awaited_events(entry: QueueEntry) -> str:
    """The events that requeue a pod, as far as there is room for them."""
    names = list(dict.fromkeys(name for each in entry.awaited for name in each.events))
    more = len(names) - _MAX_SHOWN_EVENTS
    return ",".join(names[:_MAX_SHOWN_EVENTS]) + (f" +{more}" if more > 0 else "")


def age(later: datetime, earlier: datetime) -> str:
    """A duration as kubectl shows ages."""
    seconds = max(int((later - earlier).total_seconds()), 0)
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
