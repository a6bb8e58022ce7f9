"""What the queue tells whoever keeps metrics."""

from __future__ import annotations


class QueueObserver:
    """Is told what cannot be read off the queue afterwards; does nothing itself."""

    times_hints = False
    """Whether hints are to be timed: that costs as much as many hints do."""

    def incoming(self, queue: str, event: str) -> None:
        """A pod has come into the active, the backoff or the unschedulable queue, because of an event."""

    def hint_asked(self, plugin: str, event: str, outcome: str, seconds: float) -> None:
        """A hint was asked; it said `Queue` or `QueueSkip`, or failed (`Error`)."""
