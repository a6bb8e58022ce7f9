"""Asking a plugin whether a change of an object may help a pod that it refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from moorage.cluster.object_tables import Objects
from moorage.config.args import ARGS_BY_PLUGIN
from moorage.framework.interface.events import Action, ClusterEvent, Resource, interests_of
from moorage.framework.interface.handle import Handle
from moorage.plugins import default_registry
from moorage.queue.event_of_change import PodEvents, node_events

RESOURCES: dict[type[Object], Resource] = {
    Node: Resource.NODE,
    PersistentVolume: Resource.PERSISTENT_VOLUME,
    PersistentVolumeClaim: Resource.PERSISTENT_VOLUME_CLAIM,
    StorageClass: Resource.STORAGE_CLASS,
    CSINode: Resource.CSI_NODE,
    CSIDriver: Resource.CSI_DRIVER,
    CSIStorageCapacity: Resource.CSI_STORAGE_CAPACITY,
    VolumeAttachment: Resource.VOLUME_ATTACHMENT,
    ResourceClaim: Resource.RESOURCE_CLAIM,
    ResourceSlice: Resource.RESOURCE_SLICE,
    DeviceClass: Resource.DEVICE_CLASS,
}


def what_happened(old: Object | None, new: Object | None) -> tuple[ClusterEvent, ...]:
    """The events that a change means."""
    if isinstance(old, Pod) and isinstance(new, Pod):
        return PodEvents(tells_target=True).of_update(old, new, is_target=True)
    if isinstance(old, Node) and isinstance(new, Node):
        return node_events(old, new)
    changed = new or old
    assert changed is not None
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
    resource = Resource.ASSIGNED_POD if isinstance(changed, Pod) else RESOURCES[type(changed)]
    return (ClusterEvent(resource, action),)


def wakes(
    name: str,
    pod: Pod,
    old: Object | None,
    new: Object | None,
    *,
    objects: Iterable[Object] = (),
    args: Mapping[str, Any] | None = None,
) -> bool:
    """Whether a change may help a pod that the plugin refused, by its interests and hints."""
    handle = Handle(Objects())
    for each in (*objects, *([new] if new is not None and not isinstance(new, Pod | Node) else [])):
        handle.objects.put(each)
    kind = ARGS_BY_PLUGIN.get(name)
    plugin = default_registry().make(name, kind and convert(dict(args or {}), kind, name), handle)
    return any(
        interest.hint is None or interest.hint(pod, old, new)
        for event in what_happened(old, new)
        for interest in interests_of({name: plugin})[name]
        if interest.event.covers(event)
    )
