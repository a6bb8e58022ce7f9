"""The admission chain: every write passes the plugins that handle it, in a fixed order, and no others."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from moorage.api.manifests import Now, utc_now
from moorage_cluster.apiserver.admission import (
    certificate_requestor,
    default_ingress_class,
    default_storage_class,
    default_toleration_seconds,
    limit_ranger,
    namespace_lifecycle,
    persistent_volume_claim_resize,
    pod_topology_labels,
    priority,
    runtime_class,
    service_account,
    storage_object_in_use_protection,
    taint_nodes_by_condition,
)
from moorage_cluster.apiserver.admission.base import Admit, Attributes, Reader
from moorage_cluster.apiserver.admission.plugin import Call, Plugin
from moorage_cluster.apiserver.admission.quota import resource_quota


class Chain:
    """Plugins in order."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self.plugins = tuple(plugins)
        # Custom resources come and go, so the plugins for a kind of write are looked up when it first occurs.
        self._steps: dict[tuple[str, str, str], tuple[Admit, ...]] = {}

    def admit(self, attributes: Attributes, reader: Reader) -> None:
        """Let all plugins that handle a write change or reject it."""
        key = (attributes.operation, attributes.resource.storage, attributes.subresource)
        steps = self._steps.get(key)
        if steps is None:
            steps = self._steps[key] = self._concerned(
                Call(attributes.operation, attributes.resource.storage, attributes.subresource)
            )
        for step in steps:
            step(attributes, reader)

    def _concerned(self, call: Call) -> tuple[Admit, ...]:
        return tuple(
            plugin.admit for plugin in self.plugins if any(each.covers(call) for each in plugin.handles)
        )


def default_plugins(random: Random, now: Now = utc_now) -> tuple[Plugin, ...]:
    """The default plugins: first those that change objects, then those that validate them.

    random: source of the suffixes of volume names.
    now: returns the current time.
    """
    return (
        namespace_lifecycle.PLUGIN,
        limit_ranger.DEFAULTS,
        *service_account.plugins(random),
        taint_nodes_by_condition.PLUGIN,
        *priority.PLUGINS,
        default_toleration_seconds.PLUGIN,
        default_storage_class.PLUGIN,
        default_ingress_class.PLUGIN,
        certificate_requestor.PLUGIN,
        storage_object_in_use_protection.PLUGIN,
        runtime_class.PLUGIN,
        *pod_topology_labels.PLUGINS,
        *limit_ranger.BOUNDS,
        persistent_volume_claim_resize.PLUGIN,
        *resource_quota.plugins(now),
    )
