"""The controllers of infrastructure: storage, nodes, devices, and disruption budgets."""

from __future__ import annotations

from functools import partial

from moorage_cluster.controllers.disruption import Disruption, StaleDisruption
from moorage_cluster.controllers.endpoint_slice_mirroring import EndpointSliceMirroringController
from moorage_cluster.controllers.endpoint_slices import EndpointSliceController
from moorage_cluster.controllers.endpoints import EndpointsController
from moorage_cluster.controllers.manager import MakeController
from moorage_cluster.controllers.node_lifecycle import MONITOR_GRACE_SECONDS, NodeLifecycle
from moorage_cluster.controllers.node_pod_gc import PodGarbageCollection
from moorage_cluster.controllers.node_taint_eviction import TaintEviction
from moorage_cluster.controllers.persistent_volumes import PersistentVolumeBinder
from moorage_cluster.controllers.resource_claims import PodResourceClaims, ResourceClaimRelease
from moorage_cluster.controllers.volume_ephemeral import EphemeralVolumes
from moorage_cluster.controllers.volume_protection import (
    AttributesClassProtection,
    ClaimProtection,
    VolumeProtection,
)
from moorage_cluster.controllers.volume_provisioning import HostPathProvisioner


def infrastructure_controllers(
    node_grace_seconds: float = MONITOR_GRACE_SECONDS,
) -> tuple[MakeController, ...]:
    """The controllers of a cluster; `node_grace_seconds`: how long nodes may be without heartbeats."""
    return (
        PersistentVolumeBinder,
        HostPathProvisioner,
        ClaimProtection,
        VolumeProtection,
        AttributesClassProtection,
        EphemeralVolumes,
        partial(NodeLifecycle, grace_seconds=node_grace_seconds),
        TaintEviction,
        PodGarbageCollection,
        Disruption,
        StaleDisruption,
        PodResourceClaims,
        ResourceClaimRelease,
        EndpointsController,
        EndpointSliceController,
        EndpointSliceMirroringController,
    )
