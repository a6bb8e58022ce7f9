"""PrioritySort: by priority, then by the time in the queue."""

from __future__ import annotations

from moorage.client.kinds import Kind
from moorage.queue.queued_pod import QueuedPod


class PrioritySort:
    """Orders the queue by priority, then by time."""

    name = "PrioritySort"
    watched_kinds: tuple[Kind, ...] = ()

    def queue_sort(self, queued: QueuedPod) -> tuple[int, float]:
        """Higher priority and earlier time make a smaller key."""
        return (-queued.priority, queued.timestamp)
