"""The controllers for what workloads stand on: storage, nodes, devices, and how much may be disturbed."""

from __future__ import annotations

from moorage.controllers.disruption import Disruption, StaleDisruption
from moorage.controllers.endpoint_slice_mirroring import EndpointSliceMirroringController
from moorage.controllers.endpoint_slices import EndpointSliceController
from moorage.controllers.endpoints import EndpointsController
from moorage.controllers.manager import MakeController
from moorage.controllers.node_lifecycle import NodeLifecycle
from moorage.controllers.node_pod_gc import PodGarbageCollection
from moorage.controllers.node_taint_eviction import TaintEviction
from moorage.controllers.persistent_volumes import PersistentVolumeBinder
from moorage.controllers.resource_claims import PodResourceClaims, ResourceClaimRelease
from moorage.controllers.volume_ephemeral import EphemeralVolumes
from moorage.controllers.volume_protection import AttributesClassProtection, ClaimProtection, VolumeProtection
from moorage.controllers.volume_provisioning import HostPathProvisioner

INFRASTRUCTURE_CONTROLLERS: tuple[MakeController, ...] = (
    PersistentVolumeBinder,
    HostPathProvisioner,
    ClaimProtection,
    VolumeProtection,
    AttributesClassProtection,
    EphemeralVolumes,
    NodeLifecycle,
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
