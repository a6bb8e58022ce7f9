"""The order of the queue by a plugin from outside; invalid keys do not break the queue.

Keys are compared inside the queue, while pods are added and removed. A key that cannot be made or compared
must not make this fail: its pod is sorted after all others, and the reason is logged.
"""

from __future__ import annotations

from typing import Any

from moorage.framework.interface.status import PluginError
from moorage.framework.runtime.plugin_call import PluginCall
from moorage.klog import Logger, kobj
from moorage.queue.queued_pod import QueuedPod

log = Logger(__name__)


class Turn:
    """A pod's place in the order: its key, or none if that could not be made."""

    __slots__ = ("_has_key", "_key", "_order")

    def __init__(self, order: OutsideOrder, key: Any = None, *, has_key: bool = True) -> None:
        self._order = order
        self._key = key
        self._has_key = has_key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Turn) or self._has_key is not other._has_key:
            return False
        return not self._has_key or bool(self._key == other._key)

    __hash__ = None  # type: ignore[assignment]  # Keys need not have one.

    def __lt__(self, other: Turn) -> bool:
        if not (self._has_key and other._has_key):
            return self._has_key and not other._has_key
        try:
            return bool(self._key < other._key)
        except Exception as error:
            self._order.complain(error)
            return False


class OutsideOrder:
    """Makes the keys of all pods."""

    def __init__(self, call: PluginCall) -> None:
        self._sort = call
        self._has_complained = False

    def __call__(self, queued: QueuedPod) -> Turn:
        """A pod's place in the order: smaller ones first."""
        try:
            return Turn(self, self._sort(queued))
        except PluginError as error:
            log.error(error, "Queue sort plugin failed; the pod is tried last", pod=kobj(queued.pod))
            return Turn(self, has_key=False)

    def complain(self, error: Exception) -> None:
        """Log, once, that keys cannot be compared."""
        if not self._has_complained:
            self._has_complained = True
            log.error(self._sort.raised(error), "The scheduling queue is not in order")
