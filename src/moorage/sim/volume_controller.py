"""A stand-in for the controllers that finish what VolumeBinding starts, for replays and simulations.

In a cluster the scheduler writes a claim's reference into a volume, or the name of a node into a claim; the
volume controller and the CSI driver do the rest. Here all of that happens at once.
"""

from __future__ import annotations

from msgspec.structs import replace

from moorage.api.base import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from moorage.api.node import Node
from moorage.api.persistent_volumes import BIND_COMPLETED, BOUND_BY_CONTROLLER, claim_class
from moorage.api.selectors import SelectorError, label_selector
from moorage.api.storage import (
    CSINode,
    CSIStorageCapacity,
    CSIVolume,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    VolumeNodeAffinity,
)
from moorage.cluster.cache import Cache
from moorage.framework.interface.effects import BindVolume, SelectNode
from moorage.plugins.volume_binding.reservation import given_to, to_be_provisioned

BOUND = "Bound"


class VolumeController:
    """Binds and provisions volumes in a cache."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def apply(self, effect: BindVolume | SelectNode) -> PersistentVolume | PersistentVolumeClaim:
        """Complete a request of the scheduler; returns the object that it wrote, as stored afterwards."""
        claim = self._stored(effect.claim)
        if isinstance(effect, BindVolume):
            stored = self._cache.objects.of(PersistentVolume).stored("", effect.volume.name)
            return self._bind(effect.volume if stored is None else stored, claim)[0]
        asking = to_be_provisioned(claim, effect.node_name)
        return self._bind(self._provision(asking, effect.node_name), asking)[1]

    def _stored(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        stored = self._cache.objects.of(PersistentVolumeClaim).stored(claim.namespace, claim.name)
        return claim if stored is None else stored

    def _bind(
        self, volume: PersistentVolume, claim: PersistentVolumeClaim
    ) -> tuple[PersistentVolume, PersistentVolumeClaim]:
        volume = given_to(volume, claim)
        volume = replace(volume, status=replace(volume.status, phase=BOUND))
        annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
        claim = replace(
            claim,
            metadata=replace(claim.metadata, annotations=annotations),
            spec=replace(claim.spec, volume_name=volume.name),
            status=replace(claim.status, phase=BOUND),
        )
        self._cache.put(volume)
        self._cache.put(claim)
        return volume, claim

    def _provision(self, claim: PersistentVolumeClaim, node_name: str) -> PersistentVolume:
        """A new volume for a claim, of the requested size, in the node's topology segment."""
        name = f"pvc-{claim.metadata.uid or claim.key.replace('/', '-')}"
        storage_class = self._cache.objects.of(StorageClass).get("", claim_class(claim)) or StorageClass()
        node = self._cache.node(node_name)
        return PersistentVolume(
            api_version="v1",
            kind="PersistentVolume",
            metadata=ObjectMeta(name=name),
            spec=PersistentVolumeSpec(
                capacity=claim.spec.resources.requests,
                access_modes=claim.spec.access_modes,
                storage_class_name=claim_class(claim),
                volume_mode=claim.spec.volume_mode,
                volume_attributes_class_name=claim.spec.volume_attributes_class_name,
                csi=CSIVolume(driver=storage_class.provisioner, volume_handle=name),
                node_affinity=None if node is None else self._affinity(storage_class, node),
            ),
        )

    def _affinity(self, storage_class: StorageClass, node: Node) -> VolumeNodeAffinity | None:
        """The topology segment of a node; None if the driver has no topology."""
        keys = [key for key in self._topology_keys(storage_class, node) if key in node.labels]
        if not keys:
            return None
        here = tuple(
            NodeSelectorRequirement(key=key, operator="In", values=(node.labels[key],)) for key in keys
        )
        term = NodeSelectorTerm(match_expressions=here)
        return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,)))

    def _topology_keys(self, storage_class: StorageClass, node: Node) -> list[str]:
        """The topology keys of a driver.

        They are in the node's CSINode. Without it, they are those of the storage class, or of the driver's
        CSIStorageCapacity objects.
        """
        objects = self._cache.objects
        csi_node = objects.of(CSINode).get("", node.name)
        for driver in csi_node.spec.drivers if csi_node is not None else ():
            if driver.name == storage_class.provisioner:
                return sorted(driver.topology_keys)
        for term in storage_class.allowed_topologies:
            keys = {each.key: each.values for each in term.match_label_expressions}
            if keys and all(node.labels.get(key) in values for key, values in keys.items()):
                return sorted(keys)
        reports = objects.of(CSIStorageCapacity)
        return sorted(
            {
                key
                for report in reports
                if report.storage_class_name == storage_class.name
                for key in _keys_of(report, node)
            }
        )


def _keys_of(report: CSIStorageCapacity, node: Node) -> set[str]:
    """The labels by which a CSIStorageCapacity selects a node; none if it does not."""
    try:
        selector = label_selector(report.node_topology)
    except SelectorError:
        return set()
    if not selector.matches(node.labels):
        return set()
    return {each.key for each in selector.requirements or ()}
