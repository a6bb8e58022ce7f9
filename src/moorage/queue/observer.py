"""Queue events for metrics."""

from __future__ import annotations

from moorage.queue.queued_pod import QueuedPod


class QueueObserver:
    """Receives what cannot be read from the queue later; does nothing itself."""

    times_hints = False
    """Whether the duration of hints is measured: that costs as much as many hints do."""

    def incoming(self, queue: str, event: str, queued: QueuedPod) -> None:
        """An event moved a pod or a group into the active, the backoff or the unschedulable queue."""

    def stayed(self, queue: str, event: str, queued: QueuedPod) -> None:
        """What came in just now is where its strategy requeues it: the pods count, but not as an entity.

        kube-scheduler takes it to have been in that queue before.
        """

    def hint_asked(self, plugin: str, event: str, outcome: str, seconds: float) -> None:
        """A hint was evaluated: it returned `Queue` or `QueueSkip`, or failed (`Error`)."""
