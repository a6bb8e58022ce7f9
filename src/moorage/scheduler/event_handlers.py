"""Event handlers: changes from informers, applied to the cache and the queue.

Every change is applied to the cache first, then reported to the queue as an event, so that a requeued pod
finds the cluster in the state after the event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from moorage.api.base import Object
from moorage.api.devices import DeviceTaintRule
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.pod_groups import Group, key_of
from moorage.client.declared_kinds import declared_kind_of
from moorage.client.informer import EventType, Listener
from moorage.cluster.cache import Cache
from moorage.framework.runtime.pre_binding import PreBinding
from moorage.framework.runtime.profiles import Profiles
from moorage.framework.runtime.waiting_pods import WaitingPods
from moorage.klog import Logger, kobj
from moorage.queue import cluster_events as events
from moorage.queue.cluster_events import Action, Resource
from moorage.queue.event_of_change import lost_nomination, node_events
from moorage.queue.scheduling_queue import SchedulingQueue
from moorage.scheduler.watched_kinds import CustomObject

log = Logger(__name__)

_ACTIONS: Final = {"ADDED": Action.ADD, "MODIFIED": Action.UPDATE, "DELETED": Action.DELETE}
_RESOURCES: Final = {
    "PersistentVolume": Resource.PERSISTENT_VOLUME,
    "PersistentVolumeClaim": Resource.PERSISTENT_VOLUME_CLAIM,
    "StorageClass": Resource.STORAGE_CLASS,
    "CSINode": Resource.CSI_NODE,
    "CSIDriver": Resource.CSI_DRIVER,
    "CSIStorageCapacity": Resource.CSI_STORAGE_CAPACITY,
    "VolumeAttachment": Resource.VOLUME_ATTACHMENT,
    "ResourceClaim": Resource.RESOURCE_CLAIM,
    "ResourceSlice": Resource.RESOURCE_SLICE,
    "DeviceClass": Resource.DEVICE_CLASS,
    "DeviceTaintRule": Resource.RESOURCE_SLICE,
    "PodGroup": Resource.POD_GROUP,
    "CompositePodGroup": Resource.COMPOSITE_POD_GROUP,
}
"""The kinds whose changes may requeue pods, beside declared ones; changes of others go to the cache only."""


def event_resource(type: type[Object]) -> str | None:
    """The resource of events about objects of a type; None if their changes requeue no pods."""
    declared = declared_kind_of(type)
    return _RESOURCES.get(type.__name__) if declared is None else declared.resource


class EventHandlers:
    """Applies changes from informers to the cache and the queue."""

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        profiles: Profiles,
        waiting: WaitingPods,
        pre_binding: PreBinding,
    ) -> None:
        self._cache = cache
        self._groups = cache.pod_groups
        self._queue = queue
        self._held: list[Callable[[], None]] | None = None
        """Changes that are held back; None: they are applied as they come."""
        self.profiles = profiles
        self._waiting = waiting
        self._pre_binding = pre_binding

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold changes back: the nodes of a group's cycle stay the same while it waits for extenders."""
        assert self._held is None
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            for apply in held:
                apply()

    def node(self, type: EventType, obj: Object, before: Object | None) -> None:
        """A node was added, updated or deleted."""
        assert isinstance(obj, Node)
        if self._held is not None:
            self._held.append(partial(self.node, type, obj, before))
            return
        if type == "DELETED":
            log.info(3, "Delete event for node", node=kobj(obj))
            self._cache.remove_node(obj.name)
            self._queue.move_all(events.NODE_DELETE, obj, None)
            return
        if isinstance(before, Node):
            if log.v >= 4:
                log.info(4, "Update event for node", node=kobj(obj))
            self._cache.put_node(obj)
            for event in node_events(before, obj):
                self._queue.move_all(event, before, obj)
        else:
            if log.v >= 3:
                log.info(3, "Add event for node", node=kobj(obj))
            self._cache.put_node(obj)
            self._queue.move_all(events.NODE_ADD, None, obj)

    def other(self, type: EventType, obj: Object, before: Object | None) -> None:
        """An object other than a node or a pod was added, updated or deleted."""
        if self._held is not None:
            self._held.append(partial(self.other, type, obj, before))
            return
        is_deleted = type == "DELETED"
        if is_deleted:
            self._cache.objects.remove(obj)
        else:
            if before is not None and before.__class__ is not obj.__class__:
                self._cache.objects.remove(before)  # A plugin has declared its kind again.
            self._cache.objects.put(obj)
        if isinstance(obj, Group):
            self._queue.groups_changed(self._groups.leaves(key_of(obj)))
        resource = event_resource(obj.__class__)
        if resource is not None:
            # A rule that comes or goes is an update of the slices whose devices it taints.
            action = Action.UPDATE if isinstance(obj, DeviceTaintRule) else _ACTIONS[type]
            event = events.event(resource, action)
            self._queue.move_all(event, obj if is_deleted else before, None if is_deleted else obj)

    def custom(self, resource: str) -> Listener[CustomObject]:
        """A listener for a custom kind: the queue receives its events, the cache does not."""

        def listen(type: EventType, obj: CustomObject, before: CustomObject | None) -> None:
            is_deleted = type == "DELETED"
            event = events.event(resource, _ACTIONS[type])
            self._queue.move_all(event, obj if is_deleted else before, None if is_deleted else obj)

        return listen

    def pod(self, type: EventType, obj: Object, before: Object | None) -> None:
        """A pod was added, updated or deleted."""
        assert isinstance(obj, Pod)
        if self._held is not None:
            self._held.append(partial(self.pod, type, obj, before))
            return
        old = before if isinstance(before, Pod) else None
        if old is not None and old.metadata.uid != obj.metadata.uid:
            self._deleted(old)
            old = None
        if (
            old is not None
            and self._groups.is_enabled
            and old.spec.scheduling_group != obj.spec.scheduling_group
        ):
            self._leaves_group(old)
        if type == "DELETED" or obj.finished:
            self._deleted(obj)
        elif obj.spec.node_name:
            self._on_node(obj, old)
        elif self.profiles.of(obj) is not None:
            self._without_node(obj, old)

    def _leaves_group(self, pod: Pod) -> None:
        """A pod, of which this is the state before, is not in its group any more: labels can change."""
        self._groups.remove(pod)
        self._queue.delete(pod)

    def _deleted(self, pod: Pod) -> None:
        """A pod was deleted, or has finished."""
        if log.v >= 3:
            self._log_deleted(pod)
        if self._groups.is_enabled:
            self._groups.remove(pod)
        self._queue.delete(pod)
        counted = self._cache.pod(pod.uid)
        if counted is not None and self._cache.is_assumed(pod):
            self._stop(counted)
            self._cache.nominations.remove(pod.uid)
        elif counted is not None or pod.spec.node_name:
            self._cache.remove_pod(pod)
            self._queue.move_all(events.ASSIGNED_POD_DELETE, pod if pod.spec.node_name else counted, None)
        elif pod.status.nominated_node_name:
            self._queue.nomination_removed(pod)

    def _log_deleted(self, pod: Pod) -> None:
        if pod.spec.node_name:
            log.info(3, "Delete event for scheduled pod", pod=kobj(pod))
        elif self.profiles.of(pod) is not None:
            log.info(3, "Delete event for unscheduled pod", pod=kobj(pod))

    def _stop(self, assumed: Pod) -> None:
        """A pod was deleted while it is being bound: its node's resources are free.

        If it waits for a permit, its binding cycle ends and unreserves everything. Otherwise the binding will
        fail; the resources are free from now on.
        """
        waiting = self._waiting.get(assumed.uid)
        if waiting is not None:
            waiting.reject("", "removed")
            return
        self._pre_binding.stop(assumed.uid, "removed")
        self._cache.forget_pod(assumed)
        self._queue.move_all(events.ASSIGNED_POD_DELETE, assumed, None)

    def _on_node(self, pod: Pod, old: Pod | None) -> None:
        was_bound = old is not None and bool(old.spec.node_name)
        if log.v >= 3:
            self._log_bound(pod, old, was_bound)
        if not was_bound:
            self._queue.delete(pod)
            self._queue.done(pod.uid)
        assumed = self._cache.put_pod(pod)
        if self._groups.is_enabled:
            self._groups.add(pod)
        if was_bound and old is not None:
            for event in self._queue.pod_events.of_update(old, pod):
                self._queue.move_all(event, old, pod)
        else:
            self._queue.move_all(events.ASSIGNED_POD_ADD, None, pod)
        if assumed is not None and assumed.spec.node_name != pod.spec.node_name:
            # Another scheduler bound it elsewhere: the resources of the assumed node are free.
            self._queue.move_all(events.ASSIGNED_POD_DELETE, assumed, None)

    def _log_bound(self, pod: Pod, old: Pod | None, was_bound: bool) -> None:
        if was_bound:
            log.info(4, "Update event for scheduled pod", pod=kobj(pod))
            return
        log.info(3, "Add event for scheduled pod", pod=kobj(pod))
        if old is not None and self.profiles.of(pod) is not None:
            log.info(3, "Delete event for unscheduled pod", pod=kobj(pod))

    def _without_node(self, pod: Pod, old: Pod | None) -> None:
        if self._groups.is_enabled:
            self._groups.add(pod)
        assumed = self._cache.pod(pod.uid)
        if assumed is not None and self._cache.is_assumed(pod):
            # It is being bound; of all updates, only its deletion can stop that.
            if pod.metadata.deletion_timestamp and not (old and old.metadata.deletion_timestamp):
                self._stop(assumed)
            return
        if assumed is not None:
            self._cache.remove_pod(assumed)  # The API server was restored to a state before the binding.
            old = None
        if old is None:
            if log.v >= 3:
                log.info(3, "Add event for unscheduled pod", pod=kobj(pod))
            self._queue.add(pod)
            return
        if log.v >= 4:
            log.info(4, "Update event for unscheduled pod", pod=kobj(pod))
        self._queue.update(old, pod)
        if lost_nomination(old, pod):
            self._queue.nomination_removed(old)
