"""Which kinds of objects are followed: those that the enabled plugins look at, and no more.

Nodes and pods always are. A plugin that does not come with moorage may look at anything, so for its sake
everything is followed. Kinds that nobody here knows (`plural.version.group`) are followed if a plugin names
them among its events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from moorage.api.base import Object, ObjectMeta
from moorage.api.decode import convert
from moorage.api.manifests import Manifest
from moorage.client import kinds
from moorage.client.kinds import Kind
from moorage.framework.runtime.framework import Framework
from moorage.queue.events import Resource
from moorage.queue.rules import watched_actions

_VOLUMES: Final = (kinds.PERSISTENT_VOLUME, kinds.PERSISTENT_VOLUME_CLAIM, kinds.STORAGE_CLASS)
_DEVICES: Final = (kinds.RESOURCE_CLAIM, kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS)

LOOKED_AT: Final[Mapping[str, tuple[Kind, ...]]] = {
    "DefaultBinder": (),
    "DefaultPreemption": (kinds.POD_DISRUPTION_BUDGET,),
    "DynamicResources": _DEVICES,
    "ImageLocality": (),
    "InterPodAffinity": (kinds.NAMESPACE,),
    "NodeAffinity": (),
    "NodeDeclaredFeatures": (),
    "NodeName": (),
    "NodePorts": (),
    "NodeResourcesBalancedAllocation": _DEVICES,
    "NodeResourcesFit": _DEVICES,
    "NodeUnschedulable": (),
    "NodeVolumeLimits": (*_VOLUMES, kinds.CSI_NODE, kinds.CSI_DRIVER, kinds.VOLUME_ATTACHMENT),
    "PodTopologySpread": (
        kinds.SERVICE,
        kinds.REPLICATION_CONTROLLER,
        kinds.REPLICA_SET,
        kinds.STATEFUL_SET,
    ),
    "PrioritySort": (),
    "SchedulingGates": (),
    "TaintToleration": (),
    "VolumeBinding": (*_VOLUMES, kinds.CSI_NODE, kinds.CSI_DRIVER, kinds.CSI_STORAGE_CAPACITY),
    "VolumeRestrictions": (kinds.PERSISTENT_VOLUME_CLAIM,),
    "VolumeZone": _VOLUMES,
}
"""What each plugin that comes with moorage looks at, beside nodes and pods."""

_EVERYTHING: Final = tuple(dict.fromkeys(kind for each in LOOKED_AT.values() for kind in each))
_KNOWN_RESOURCES: Final = frozenset(str(resource) for resource in Resource)


class CustomObject(Object):
    """An object of a kind that only a plugin knows; `content` is all of it."""

    content: Manifest = {}


def read_custom(raw: bytes) -> CustomObject:
    """An object as the API server sends it."""
    content = msgspec.json.decode(raw, type=Manifest)
    return CustomObject(
        api_version=content.get("apiVersion", ""),
        kind=content.get("kind", ""),
        metadata=convert(content.get("metadata") or {}, ObjectMeta),
        content=content,
    )


def needed_kinds(frameworks: Iterable[Framework]) -> list[Kind]:
    """The kinds to follow beside nodes and pods, each once."""
    plugins = dict.fromkeys(name for framework in frameworks for name in framework.plugins)
    return list(dict.fromkeys(kind for name in plugins for kind in LOOKED_AT.get(name, _EVERYTHING)))


def custom_kinds(frameworks: Iterable[Framework]) -> dict[str, Kind]:
    """By what plugins call them, the kinds that nobody here knows and some plugin wants to hear of."""
    watched = watched_actions(framework.queue_rules() for framework in frameworks)
    return {name: kind for name in watched if (kind := custom_kind(name)) is not None}


def custom_kind(name: str) -> Kind | None:
    """`foos.v1.example.com`; None for the kinds that are known, and for what is no such name."""
    plural, _, rest = name.partition(".")
    version, _, group = rest.partition(".")
    return None if name in _KNOWN_RESOURCES or not group else Kind(group, version, plural, plural)
