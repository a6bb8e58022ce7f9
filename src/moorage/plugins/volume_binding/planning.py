"""How a pod's claims would get their volumes on each node: all decisions of VolumeBinding.

Bound claims have a volume, which the node must reach. Claims that waited for the pod take an existing volume
or else get a new one, if the node allows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from moorage.api.base import NodeSelector
from moorage.api.node import Node
from moorage.api.persistent_volumes import SELECTED_NODE, volume_class
from moorage.api.storage import CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from moorage.cluster.grouped_objects import GroupedObjects
from moorage.cluster.object_tables import Objects
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.volume_binding.matching import (
    NONE,
    Match,
    affinity_of,
    affinity_terms,
    match_volumes,
    reached_nodes,
)
from moorage.plugins.volume_binding.provisioning import Provisioning, provisioning
from moorage.plugins.volumes.csi_migration import (
    MigratedDisk,
    TranslationError,
    migrated_affinity,
    migrated_disk,
    migration_of,
)
from moorage.plugins.volumes.node_columns import NodeColumns
from moorage.plugins.volumes.node_masks import NodeMasks
from moorage.plugins.volumes.persistent_volume_claims import VolumeError

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""On a CSINode: the old drivers whose volumes CSI drivers serve on the node, separated by commas."""


def _migrated_plugins(csi_nodes: Iterable[CSINode]) -> dict[str, int]:
    """1 for each old driver that has been replaced on a node."""
    listed = (each.metadata.annotations.get(MIGRATED_PLUGINS, "") for each in csi_nodes)
    return {old_name: 1 for text in listed for old_name in text.split(",")}


@dataclass(frozen=True, slots=True, eq=False)
class VolumePlan:
    """How claims without a volume would get one. Arrays have shape (nodes,).

    provisions: each with the nodes where the claim would need a new volume.
    unbindable, short_of_space: where some claim gets none, and why.
    """

    matches: Sequence[Match]
    provisions: Sequence[tuple[Provisioning, NDArray[np.bool_]]]
    unbindable: NDArray[np.bool_]
    short_of_space: NDArray[np.bool_]

    def at(self, index: int) -> PlannedBindings | None:
        """The choice for one node; None if the node is infeasible."""
        if self.unbindable[index] or self.short_of_space[index]:
            return None
        return PlannedBindings(
            tuple(
                (match.claim, match.volumes[match.choice[index]])
                for match in self.matches
                if match.choice[index] != NONE
            ),
            tuple(provision.claim for provision, needed in self.provisions if needed[index]),
        )


@dataclass(frozen=True, slots=True)
class PlannedBindings:
    """Which claims take which volumes on a node, and which get new ones there."""

    bindings: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...]
    provisions: tuple[PersistentVolumeClaim, ...]


class VolumePlanner:
    """Makes plans; values derived from the tables of volumes follow their changes."""

    def __init__(self) -> None:
        self._volumes: GroupedObjects[PersistentVolume] = GroupedObjects(volume_class)
        self._capacities: GroupedObjects[CSIStorageCapacity] = GroupedObjects(
            lambda capacity: capacity.storage_class_name
        )
        self._migrated: NodeColumns[CSINode] = NodeColumns(lambda csi_node: csi_node.name, _migrated_plugins)
        self._reached: NodeMasks[NodeSelector] = NodeMasks(reached_nodes)

    def reachable(self, volumes: Iterable[PersistentVolume], nodes: Nodes) -> NDArray[np.bool_]:
        """Which nodes reach all of some volumes. Shape (nodes,).

        A volume is not looked at for nodes that do not reach one before it.
        """
        reachable = np.ones(len(nodes), bool)
        for volume in volumes:
            reachable = reachable & self._reachable(volume, nodes, reachable)
        return reachable

    def _reachable(
        self, volume: PersistentVolume, nodes: Nodes, asked: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        plain = self._allowed(affinity_of(volume), nodes)
        disk = migrated_disk(volume.spec)
        if disk is None:
            return plain
        csi_nodes = nodes.objects.of(CSINode)
        replaced = self._migrated.column(csi_nodes, migration_of(disk).old_name, nodes) > 0
        if not (replaced & asked).any():
            return plain
        return np.where(replaced, self._allowed(_translated(volume), nodes), plain)

    def _allowed(self, affinity: NodeSelector | None, nodes: Nodes) -> NDArray[np.bool_]:
        return np.ones(len(nodes), bool) if affinity is None else self._reached.mask(affinity, nodes)

    def plan(self, claims: Sequence[PersistentVolumeClaim], nodes: Nodes) -> VolumePlan:
        """How claims that waited for a node would get volumes.

        A claim that an earlier attempt asked a provisioner to serve stays with the node chosen then.
        """
        all_nodes = np.ones(len(nodes), bool)
        undecided = all_nodes.copy()
        chosen, unchosen = [], []
        for claim in claims:
            node_name = claim.metadata.annotations.get(SELECTED_NODE)
            if node_name is None:
                unchosen.append(claim)
            else:
                chosen.append(claim)
                undecided &= nodes.row_numbers() == nodes.snapshot.row_of.get(node_name, -1)
        unbindable = ~undecided
        short_of_space = np.zeros(len(nodes), bool)
        volumes = partial(self._volumes.members, nodes.objects.of(PersistentVolume))
        capacities = partial(self._capacities.members, nodes.objects.of(CSIStorageCapacity))
        matches = match_volumes(unchosen, volumes, nodes)
        needs = [(claim, all_nodes) for claim in chosen]
        needs += [(match.claim, match.choice == NONE) for match in matches]
        provisions = []
        for claim, needed in needs:
            asked = needed & undecided
            if not asked.any():
                continue
            new = provisioning(claim, nodes, capacities)
            unbindable |= asked & ~new.allowed
            short_of_space |= asked & new.allowed & ~new.roomy
            undecided &= ~(unbindable | short_of_space)
            provisions.append((new, needed))
        return VolumePlan(matches, provisions, unbindable, short_of_space)


def reached_everywhere(volumes: Iterable[PersistentVolume]) -> bool:
    """Whether it is certain that every node reaches all of some volumes."""
    for volume in volumes:
        if affinity_of(volume) is not None:
            return False
        disk = migrated_disk(volume.spec)
        if disk is not None and not _is_migrated_everywhere(volume, disk):
            return False
    return True


def _is_migrated_everywhere(volume: PersistentVolume, disk: MigratedDisk) -> bool:
    """Whether a disk has no node affinity for its CSI driver either."""
    try:
        return migrated_affinity(volume, disk) is None
    except TranslationError:
        return False


def _translated(volume: PersistentVolume) -> NodeSelector | None:
    disk = migrated_disk(volume.spec)
    assert disk is not None
    try:
        return migrated_affinity(volume, disk)
    except TranslationError as error:
        raise VolumeError(f"could not translate pv: {error}") from error


def reachable_from(volume: PersistentVolume, node: Node, objects: Objects) -> bool:
    """Whether one node can reach a volume: `VolumePlanner.reachable` for the node that a pod is bound to."""
    affinity = affinity_of(volume)
    disk = migrated_disk(volume.spec)
    csi_node = objects.of(CSINode).get("", node.name)
    if disk is not None and csi_node is not None:
        replaced = csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")
        if migration_of(disk).old_name in replaced:
            affinity = _translated(volume)
    return affinity is None or any(term.matches(node) for term in affinity_terms(affinity))
