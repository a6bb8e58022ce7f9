"""The permissions of a scheduler: what its enabled plugins need, and no more.

Watched kinds come from `scheduler.needs`, so that a role always covers the process's informers. Write
permissions depend on the plugins: evictions, volumes and devices are each written by one. An out-of-tree
plugin may evict in post_filter and bind in bind; all its other API requests need their own role.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from moorage.api.manifests import Manifest
from moorage.client.kinds import (
    CORE_EVENT,
    EVENT,
    LEASE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_CLAIM,
    Kind,
)
from moorage.framework.runtime.framework import Framework
from moorage.plugins import DEFAULT_PLUGINS
from moorage.scheduler.watched_kinds import custom_kinds, needed_kinds
from moorage.services.access_reviews import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource, or on one object of it."""

    group: str
    resource: str
    verb: str
    name: str = ""

    @classmethod
    def on(cls, kind: Kind, *verbs: str, part: str = "", name: str = "") -> tuple[Permission, ...]:
        """Some verbs on a kind of objects, or on a part of them such as their status."""
        resource = f"{kind.plural}/{part}" if part else kind.plural
        return tuple(cls(kind.group, resource, verb, name) for verb in verbs)


_FOLLOW: Final = ("list", "watch")

_ALWAYS: Final = (
    *Permission.on(NODE, *_FOLLOW),
    # A pod is read after a lost response, or after a conflict with another writer.
    *Permission.on(POD, "get", *_FOLLOW),
    *Permission.on(POD, "patch", part="status"),
    *Permission.on(EVENT, "create", "patch"),
    *Permission.on(TOKEN_REVIEW, "create"),
    *Permission.on(SUBJECT_ACCESS_REVIEW, "create"),
)
_BINDING: Final = Permission.on(POD, "create", part="binding")
_EVICTION: Final = Permission.on(POD, "delete")
_VOLUMES: Final = (
    *Permission.on(PERSISTENT_VOLUME, "patch"),
    *Permission.on(PERSISTENT_VOLUME_CLAIM, "patch"),
)
_DEVICES: Final = (
    # The scheduler creates claims for extended resources; all claims have a finalizer while in use.
    *Permission.on(RESOURCE_CLAIM, "get", "create", "patch", "delete"),
    *Permission.on(RESOURCE_CLAIM, "patch", part="status"),
    # Since v1.36 writing a claim's allocation requires permission to bind it.
    *Permission.on(RESOURCE_CLAIM, "patch", part="binding"),
)

_OUTSIDE: Final = ""
"""Key of all out-of-tree plugins."""
_DEFAULT_NAMES: Final = frozenset(plugin.name for plugin in DEFAULT_PLUGINS)
_WRITTEN: Final[Mapping[str, Mapping[str, tuple[Permission, ...]]]] = {
    "post_filter": {"DefaultPreemption": _EVICTION, "DynamicResources": _DEVICES, _OUTSIDE: _EVICTION},
    "pre_bind": {"VolumeBinding": _VOLUMES, "DynamicResources": _DEVICES},
    "bind": {"DefaultBinder": _BINDING, _OUTSIDE: _BINDING},
}
"""Write permissions of each extension point, by plugin."""


def cluster_permissions(frameworks: Iterable[Framework]) -> list[Permission]:
    """The permissions in all namespaces of a scheduler with these profiles."""
    frameworks = list(frameworks)
    followed = [*needed_kinds(frameworks), *custom_kinds(frameworks).values()]
    wanted = [
        *_ALWAYS,
        *(each for framework in frameworks for each in _written(framework)),
        *(each for kind in followed for each in Permission.on(kind, *_FOLLOW)),
    ]
    return list(dict.fromkeys(wanted))


def _written(framework: Framework) -> Iterator[Permission]:
    for point, by_plugin in _WRITTEN.items():
        for step in framework.at(point):
            yield from by_plugin.get(step.plugin if step.plugin in _DEFAULT_NAMES else _OUTSIDE, ())


def lease_permissions(name: str) -> list[Permission]:
    """Permissions for leader election in the lease's namespace; `create` cannot be restricted to a name."""
    return [
        *Permission.on(LEASE, "create"),
        *Permission.on(LEASE, "get", "update", name=name),
        *Permission.on(CORE_EVENT, "create"),
    ]


def rules(permissions: Iterable[Permission]) -> list[Manifest]:
    """Permissions as the rules of a role: a group's resources with equal verbs are merged."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for each in permissions:
        verbs.setdefault((each.group, each.resource, each.name), []).append(each.verb)
    resources: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, resource, name), allowed in verbs.items():
        resources.setdefault((group, name, tuple(sorted(allowed))), []).append(resource)
    return [
        {
            "apiGroups": [group],
            "resources": sorted(found),
            **({"resourceNames": [name]} if name else {}),
            "verbs": list(allowed),
        }
        for (group, name, allowed), found in sorted(resources.items())
    ]
