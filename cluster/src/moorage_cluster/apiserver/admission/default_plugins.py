"""The admission plugins of a server, in their order."""

from __future__ import annotations

from random import Random

from moorage.admission.plugin import Plugin
from moorage.admission.plugins import (
    default_toleration_seconds,
    limit_ranger,
    namespace_lifecycle,
    pod_topology_labels,
    priority,
    runtime_class,
)
from moorage.api.manifests import Now, utc_now
from moorage_cluster.apiserver.admission import (
    certificate_requestor,
    default_ingress_class,
    default_storage_class,
    persistent_volume_claim_resize,
    pod_group_protection,
    service_account,
    storage_object_in_use_protection,
    taint_nodes_by_condition,
)
from moorage_cluster.apiserver.admission.quota import resource_quota
from moorage_cluster.apiserver.server_version import (
    DEFAULT_SERVED,
    GENERIC_WORKLOAD,
    POD_GROUP_PREEMPTION_POLICY,
    ServerVersion,
)


def default_plugins(
    random: Random, now: Now = utc_now, version: ServerVersion = DEFAULT_SERVED
) -> tuple[Plugin, ...]:
    """The default plugins: first those that change objects, then those that validate them.

    random: source of the suffixes of volume names.
    now: returns the current time.
    version: the version that the server emulates.
    """
    return (
        namespace_lifecycle.PLUGIN,
        limit_ranger.DEFAULTS,
        *service_account.plugins(random),
        taint_nodes_by_condition.PLUGIN,
        *priority.PLUGINS,
        priority.group_plugin(preemption_policies=version.enabled(POD_GROUP_PREEMPTION_POLICY)),
        default_toleration_seconds.PLUGIN,
        default_storage_class.PLUGIN,
        default_ingress_class.PLUGIN,
        certificate_requestor.PLUGIN,
        storage_object_in_use_protection.PLUGIN,
        *((pod_group_protection.PLUGIN,) if version.enabled(GENERIC_WORKLOAD) else ()),
        runtime_class.PLUGIN,
        *pod_topology_labels.PLUGINS,
        *limit_ranger.BOUNDS,
        persistent_volume_claim_resize.PLUGIN,
        *resource_quota.plugins(now),
    )
