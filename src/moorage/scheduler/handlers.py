"""What happens in the cluster, as the cache and the queue need to hear it.

Every change goes to the cache first, then to the queue as an event, so that whoever is woken by an event
finds the cluster as the event left it.
"""

from __future__ import annotations

from typing import Final

from moorage.api.base import Object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.client.informer import EventType, Listener
from moorage.cluster.cache import Cache
from moorage.framework.runtime.pre_binding import PreBinding
from moorage.framework.runtime.profiles import Profiles
from moorage.framework.runtime.waiting_pods import WaitingPods
from moorage.klog import Logger, kobj
from moorage.queue import events
from moorage.queue.changes import lost_nomination, node_events, pod_events
from moorage.queue.events import Action, Resource
from moorage.queue.scheduling_queue import SchedulingQueue
from moorage.scheduler.needs import CustomObject

log = Logger(__name__)

_ACTIONS: Final = {"ADDED": Action.ADD, "MODIFIED": Action.UPDATE, "DELETED": Action.DELETE}
RESOURCES: Final = {
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
    "PodGroup": Resource.POD_GROUP,
}
"""The kinds whose changes may help a pod that waits; of the others only the cache hears."""


class Handlers:
    """Takes changes from informers to the cache and the queue."""

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        profiles: Profiles,
        waiting: WaitingPods,
        pre_binding: PreBinding,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self.profiles = profiles
        self._waiting = waiting
        self._pre_binding = pre_binding

    def node(self, type: EventType, obj: Object, before: Object | None) -> None:
        """A node has come, changed or gone."""
        assert isinstance(obj, Node)
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
        """An object that is neither node nor pod has come, changed or gone."""
        is_gone = type == "DELETED"
        if is_gone:
            self._cache.objects.remove(obj)
        else:
            self._cache.objects.put(obj)
        resource = RESOURCES.get(obj.__class__.__name__)
        if resource is not None:
            event = events.event(resource, _ACTIONS[type])
            self._queue.move_all(event, obj if is_gone else before, None if is_gone else obj)

    def custom(self, resource: str) -> Listener[CustomObject]:
        """Who listens to a kind that only a plugin knows: pods that wait hear of it, the cache does not."""

        def listen(type: EventType, obj: CustomObject, before: CustomObject | None) -> None:
            is_gone = type == "DELETED"
            event = events.event(resource, _ACTIONS[type])
            self._queue.move_all(event, obj if is_gone else before, None if is_gone else obj)

        return listen

    def pod(self, type: EventType, obj: Object, before: Object | None) -> None:
        """A pod has come, changed or gone."""
        assert isinstance(obj, Pod)
        old = before if isinstance(before, Pod) else None
        if old is not None and old.uid != obj.uid:
            self._gone(old)
            old = None
        if type == "DELETED" or obj.finished:
            self._gone(obj)
        elif obj.spec.node_name:
            self._on_node(obj, old)
        elif self.profiles.of(obj) is not None:
            self._without_node(obj, old)

    def _gone(self, pod: Pod) -> None:
        """A pod is gone, or over."""
        if log.v >= 3:
            self._log_gone(pod)
        self._queue.delete(pod)
        counted = self._cache.pod(pod.uid)
        if counted is not None and self._cache.is_assumed(pod):
            self._stop(counted)
            self._cache.nominations.remove(pod.uid)
        elif counted is not None or pod.spec.node_name:
            self._cache.remove_pod(pod)
            self._queue.move_all(events.ASSIGNED_POD_DELETE, pod if pod.spec.node_name else counted, None)
        elif pod.status.nominated_node_name:
            self._queue.nomination_gone(pod)

    def _log_gone(self, pod: Pod) -> None:
        if pod.spec.node_name:
            log.info(3, "Delete event for scheduled pod", pod=kobj(pod))
        elif self.profiles.of(pod) is not None:
            log.info(3, "Delete event for unscheduled pod", pod=kobj(pod))

    def _stop(self, assumed: Pod) -> None:
        """A pod goes while it is on its way to a node: the room is for others.

        If it waits for a permit, its binding cycle ends, and gives everything back in order. Otherwise the
        binding fails by itself, sooner or later; the room is free from now on.
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
        assumed = self._cache.pod(pod.uid) if self._cache.is_assumed(pod) else None
        self._cache.put_pod(pod)
        if was_bound and old is not None:
            for event in pod_events(old, pod):
                self._queue.move_all(event, old, pod)
        else:
            self._queue.move_all(events.ASSIGNED_POD_ADD, None, pod)
        if assumed is not None and assumed.spec.node_name != pod.spec.node_name:
            # Another scheduler was faster: where we wanted to have it, there is room again.
            self._queue.move_all(events.ASSIGNED_POD_DELETE, assumed, None)

    def _log_bound(self, pod: Pod, old: Pod | None, was_bound: bool) -> None:
        if was_bound:
            log.info(4, "Update event for scheduled pod", pod=kobj(pod))
            return
        log.info(3, "Add event for scheduled pod", pod=kobj(pod))
        if old is not None and self.profiles.of(pod) is not None:
            log.info(3, "Delete event for unscheduled pod", pod=kobj(pod))

    def _without_node(self, pod: Pod, old: Pod | None) -> None:
        assumed = self._cache.pod(pod.uid)
        if assumed is not None and self._cache.is_assumed(pod):
            # On its way to its node; of all that can change about it, only its end can stop it.
            if pod.metadata.deletion_timestamp and not (old and old.metadata.deletion_timestamp):
                self._stop(assumed)
            return
        if assumed is not None:
            self._cache.remove_pod(assumed)  # The API server has been set back to before it was bound.
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
            self._queue.nomination_gone(old)
