"""The order of the queue by a plugin from outside; invalid keys do not break the queue.

Keys are compared inside the queue, while pods are added and removed. A key that cannot be made or compared
must not make this fail: its pod is sorted after all others, and the reason is logged. The same holds for
sub-queues; a pod without a valid one is in a sub-queue with others of that kind.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from types import MappingProxyType
from typing import Any

from moorage.framework.interface.extension_points import Plugin, SubQueuesPlugin
from moorage.framework.interface.status import PluginError
from moorage.framework.runtime.plugin_call import PluginCall
from moorage.klog import Logger, kobj
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.sub_queues import Firsts, SubQueueOrder

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

    def call_of(self, method: str, call: Callable[..., Any]) -> PluginCall:
        """A call of another method of the plugin."""
        return PluginCall(self._sort.plugin, method, call)

    def complain(self, error: Exception) -> None:
        """Log, once, that keys cannot be compared."""
        if not self._has_complained:
            self._has_complained = True
            log.error(self._sort.raised(error), "The scheduling queue is not in order")


def sub_queues_of(plugin: Plugin, sort_key: Callable[[QueuedPod], Any]) -> SubQueueOrder | None:
    """The order of the sub-queues of a plugin; None if it has none. sort_key: the order of pods."""
    if not isinstance(plugin, SubQueuesPlugin):
        return None
    return OutsideSubQueues(plugin, sort_key) if isinstance(sort_key, OutsideOrder) else plugin


class _NoSubQueue:
    """The sub-queue of pods for which the plugin failed to answer with one."""


_NO_SUB_QUEUE = _NoSubQueue()


class OutsideSubQueues:
    """The sub-queues of a plugin from outside."""

    def __init__(self, plugin: SubQueuesPlugin, order: OutsideOrder) -> None:
        self._order = order
        self._sub_queue = order.call_of("sub_queue", plugin.sub_queue)
        self._sort = order.call_of("sub_queue_sort", plugin.sub_queue_sort)
        self._changed = order.call_of("changed_sub_queues", plugin.changed_sub_queues)
        self._has_complained = False

    def sub_queue(self, queued: QueuedPod) -> Hashable:
        """The sub-queue of a pod."""
        try:
            name: Hashable = self._sub_queue(queued)
            hash(name)
        except (PluginError, TypeError) as error:
            self._complain(error)
            return _NO_SUB_QUEUE
        return name

    def sub_queue_sort(self, sub_queue: Hashable, first: QueuedPod) -> Turn:
        """The key of a sub-queue."""
        if sub_queue is not _NO_SUB_QUEUE:
            try:
                return Turn(self._order, self._sort(sub_queue, first))
            except PluginError as error:
                self._complain(error)
        return Turn(self._order, has_key=False)

    def changed_sub_queues(
        self, firsts: Firsts, popped: Hashable | None, failed: bool
    ) -> Iterable[Hashable] | None:
        """The sub-queues whose keys may have changed; all of them, if the plugin fails."""
        given = None if popped is _NO_SUB_QUEUE else popped
        try:
            changed = self._changed(MappingProxyType(firsts), given, failed)
            return None if changed is None else dict.fromkeys(changed)
        except (PluginError, TypeError) as error:
            self._complain(error)
            return None

    def _complain(self, error: Exception) -> None:
        """Log, once, that the plugin failed."""
        if not self._has_complained:
            self._has_complained = True
            log.error(error, "Queue sort plugin failed; its sub-queues are not in order")
