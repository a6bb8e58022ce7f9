"""Which kinds of objects have informers: those that the enabled plugins declare, and no more.

Nodes and pods always have one. Other kinds are those in `watched_kinds` of the enabled plugins; a plugin
without that attribute may read all kinds that default plugins read in every version. Kinds without a type
here (`plural.version.group`) have an informer if a plugin names them among its events. Kinds that plugins
list by themselves (`listed_kinds`) have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from moorage.api.base import Object, ObjectMeta
from moorage.api.decode import convert
from moorage.api.manifests import Manifest
from moorage.client.kinds import COSCHEDULING_POD_GROUP, Kind
from moorage.framework.interface.extension_points import ListingPlugin, Plugin, WatchingPlugin
from moorage.framework.runtime.framework import Framework
from moorage.plugins import DEFAULT_PLUGINS
from moorage.queue.cluster_events import Resource
from moorage.queue.queueing_rules import watched_actions

WATCHED_BY_DEFAULT_PLUGINS: Final = tuple(
    dict.fromkeys(kind for plugin in DEFAULT_PLUGINS for kind in plugin.watched_kinds)
)
"""The kinds beside nodes and pods that any default plugin reads in every emulated version, each once."""
_KNOWN_RESOURCES: Final = frozenset(str(resource) for resource in Resource)


class CustomObject(Object):
    """An object of a custom kind; `content` is all of it."""

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
    """The kinds to watch beside nodes and pods, each once."""
    frameworks = list(frameworks)
    of_groups = (kind for framework in frameworks for kind in framework.handle.pod_groups.watched_kinds)
    return list(dict.fromkeys((*_watched_by_plugins(frameworks), *of_groups)))


def listed_kinds(frameworks: Iterable[Framework]) -> list[Kind]:
    """The kinds that plugins list by themselves, each once."""
    plugins = (plugin for framework in frameworks for plugin in framework.plugins.values())
    listing = (plugin for plugin in plugins if isinstance(plugin, ListingPlugin))
    return list(dict.fromkeys(kind for plugin in listing for kind in plugin.listed_kinds))


def read_kinds(frameworks: Iterable[Framework]) -> list[Kind]:
    """The kinds to read once beside nodes and pods, to decide as a scheduler does; each once."""
    frameworks = list(frameworks)
    return list(dict.fromkeys((*needed_kinds(frameworks), *listed_kinds(frameworks))))


def _watched_by_plugins(frameworks: Iterable[Framework]) -> Iterator[Kind]:
    plugins = (plugin for framework in frameworks for plugin in framework.plugins.values())
    return (kind for plugin in plugins for kind in _watched(plugin))


def _watched(plugin: Plugin) -> tuple[Kind, ...]:
    return plugin.watched_kinds if isinstance(plugin, WatchingPlugin) else WATCHED_BY_DEFAULT_PLUGINS


def has_labelled_groups(frameworks: Iterable[Framework]) -> bool:
    """Whether a plugin schedules the groups of scheduler-plugins, which pods name with a label."""
    return COSCHEDULING_POD_GROUP in _watched_by_plugins(frameworks)


def custom_kinds(frameworks: Iterable[Framework]) -> dict[str, Kind]:
    """The custom kinds that plugins register events of, and none has declared, by the name they use."""
    frameworks = list(frameworks)
    watched = watched_actions(framework.queue_rules() for framework in frameworks)
    known = (*_watched_by_plugins(frameworks), *listed_kinds(frameworks))
    declared = {kind.resource for kind in known}
    names = (name for name in watched if name not in declared)
    return {name: kind for name in names if (kind := custom_kind(name)) is not None}


def custom_kind(name: str) -> Kind | None:
    """The kind for `foos.v1.example.com`; None for built-in kinds and for other names."""
    plural, _, rest = name.partition(".")
    version, _, group = rest.partition(".")
    return None if name in _KNOWN_RESOURCES or not group else Kind(group, version, plural, plural)
