"""The permissions of a scheduler: what its enabled plugins need, and no more.

Watched kinds come from `scheduler.watched_kinds`, so that a role always covers the process's informers.
Write permissions are what plugins declare at the extension points at which they are enabled. A plugin that
declares none may evict in post_filter and bind in bind, as the default plugins do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from moorage.api.manifests import Manifest
from moorage.client.kinds import (
    CORE_EVENT,
    EVENT,
    LEASE,
    NODE,
    POD,
    POD_GROUP,
)
from moorage.client.permissions import Permission
from moorage.framework.interface.extension_points import POINTS, WritingPlugin
from moorage.framework.runtime.framework import Framework
from moorage.plugins.default_binder import DefaultBinder
from moorage.plugins.default_preemption.plugin import DefaultPreemption
from moorage.scheduler.watched_kinds import custom_kinds, has_labelled_groups, listed_kinds, needed_kinds
from moorage.services.access_reviews import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW

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
_SHADOW: Final = (
    *Permission.on(NODE, *_FOLLOW),
    *Permission.on(POD, *_FOLLOW),
    *Permission.on(TOKEN_REVIEW, "create"),
    *Permission.on(SUBJECT_ACCESS_REVIEW, "create"),
)
"""Reviews are questions, and store nothing: without them, no metrics can be served."""
_UNDECLARED: Final = {**DefaultPreemption.write_permissions, **DefaultBinder.write_permissions}
"""Write permissions of plugins that declare none, by extension point."""


def cluster_permissions(frameworks: Iterable[Framework]) -> list[Permission]:
    """The permissions in all namespaces of a scheduler with these profiles."""
    frameworks = list(frameworks)
    wanted = [
        *_ALWAYS,
        *_of_groups(frameworks),
        *(each for framework in frameworks for each in _written(framework)),
        *_followed(frameworks),
    ]
    return list(dict.fromkeys(wanted))


def _of_groups(frameworks: Sequence[Framework]) -> tuple[Permission, ...]:
    """A scheduler of groups writes their conditions; another one says on a group that it is ignored.

    The groups of scheduler-plugins have a controller, which writes their status.
    """
    if has_labelled_groups(frameworks):
        return ()
    if any(framework.handle.pod_groups.is_enabled for framework in frameworks):
        return Permission.on(POD_GROUP, "patch", part="status")
    return Permission.on(POD_GROUP, "get")


def shadow_permissions(frameworks: Iterable[Framework]) -> list[Permission]:
    """The permissions in all namespaces of a scheduler in shadow mode: it only reads."""
    frameworks = list(frameworks)
    return list(dict.fromkeys([*_SHADOW, *_followed(frameworks)]))


def _followed(frameworks: Sequence[Framework]) -> Iterator[Permission]:
    for kind in (*needed_kinds(frameworks), *custom_kinds(frameworks).values()):
        yield from Permission.on(kind, *_FOLLOW)
    for kind in listed_kinds(frameworks):
        yield from Permission.on(kind, "list")


def _written(framework: Framework) -> Iterator[Permission]:
    has_groups = framework.handle.version.features.generic_workload or has_labelled_groups([framework])
    for name in (name for name, point in POINTS.items() if has_groups or not point.of_groups):
        for call in framework.at(name):
            plugin = framework.plugins[call.plugin]
            declared = plugin.write_permissions if isinstance(plugin, WritingPlugin) else _UNDECLARED
            yield from declared.get(name, ())


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
