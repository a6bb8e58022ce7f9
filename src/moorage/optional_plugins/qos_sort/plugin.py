"""QOSSort: by priority, then by QoS class, then by the time in the queue."""

from __future__ import annotations

from typing import Final

from moorage import QOSClass, QueuedPod, qos_class

_PLACES: Final = {QOSClass.GUARANTEED: 0, QOSClass.BURSTABLE: 1, QOSClass.BEST_EFFORT: 2}
"""The order of the QoS classes among pods of one priority."""


class QOSSort:
    """Orders the queue by priority, then by QoS class, then by time."""

    name = "QOSSort"
    watched_kinds: tuple[()] = ()

    def queue_sort(self, queued: QueuedPod) -> tuple[int, int, float]:
        """Higher priority, firmer resources and earlier time make a smaller key.

        A group of pods has its own priority, and the QoS class of the member that stands for it: the one that
        is tried first.
        """
        return (-queued.priority, _PLACES[qos_class(queued.pod)], queued.timestamp)
