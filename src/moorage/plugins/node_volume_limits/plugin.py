"""The plugin: counts volumes where a limit could be reached.

The limit is in the node's CSINode. In use are the volumes of the pods on the node, each counted once even if
several pods share it, and further volumes in VolumeAttachments. A node far below its limit passes by counting
claims alone; the driver of each claim is looked up only where that is not enough.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.api.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from moorage.client import kinds
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import NODE_FOR_ANY_POD, DependsOn
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.filter_result import ALL, FilterResult, Reason, refuse_where
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Code, Status
from moorage.plugins.hint_helpers import USES_CLAIM, is_placed, uses_claim
from moorage.plugins.node_volume_limits.csi_volumes import RequestedVolumes, requested_volumes
from moorage.plugins.node_volume_limits.missing_drivers import NOT_INSTALLED, MissingDrivers
from moorage.plugins.node_volume_limits.volume_room import NO_LIMIT, VolumeRoom, limits_of
from moorage.plugins.node_volume_limits.volumes_in_use import NodeVolumesInUse, VolumesInUse
from moorage.plugins.volumes.csi_migration import MigratedDisk, migrated_disk, migration_of
from moorage.plugins.volumes.persistent_volume_claims import (
    VOLUME_KINDS,
    is_without_storage,
    reject_all_nodes,
)

TOO_MANY_VOLUMES = "node(s) exceed max volume count"

_REQUESTED_VOLUMES: StateKey[RequestedVolumes] = StateKey("NodeVolumeLimits/filter")


class NodeVolumeLimits:
    """Counts volumes where a limit could be reached."""

    name = "NodeVolumeLimits"
    watched_kinds: tuple[Kind, ...] = (
        *VOLUME_KINDS,
        kinds.CSI_NODE,
        kinds.CSI_DRIVER,
        kinds.VOLUME_ATTACHMENT,
    )

    def __init__(self, handle: Handle) -> None:
        self._missing = MissingDrivers() if handle.version.features.volume_limit_scaling else None
        self._room = VolumeRoom()
        self._in_use = VolumesInUse(self._room.attached.objects)

    def events(self) -> tuple[Interest, ...]:
        """A limit is raised, a volume detached, or a missing claim created."""
        return (
            on(Resource.CSI_NODE, Action.ADD),
            on(Resource.CSI_NODE, Action.UPDATE, _raises_limit, per_equivalence_class=True),
            on(Resource.POD, Action.DELETE, _frees_volume, per_equivalence_class=True),
            on(
                Resource.PERSISTENT_VOLUME_CLAIM,
                Action.ADD,
                _is_its_claim,
                per_equivalence_class=True,
                index=USES_CLAIM,
            ),
            on(Resource.VOLUME_ATTACHMENT, Action.DELETE, _detaches, per_equivalence_class=True),
        )

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """Does nothing for pods without storage."""
        return NODE_FOR_ANY_POD if is_without_storage(pod) else None

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Skip without claims and disks for CSI drivers, and where every node is far below its limits."""
        requested = requested_volumes(cycle, pod, nodes.objects)
        if isinstance(requested, Status):
            return None  # The filter rejects the pod.
        if requested.untranslatable:
            return None
        if not requested.volumes:
            return SKIP
        cycle.write(_REQUESTED_VOLUMES, requested)
        brought = self._brought(requested, nodes.objects)
        if brought and not self._room.is_enough(brought, nodes.snapshot):
            return None
        return None if any(self._missing_drivers(requested, nodes)) else SKIP

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Reject nodes where a driver is missing, or its limit would be exceeded."""
        known = cycle.read(_REQUESTED_VOLUMES)
        requested = requested_volumes(cycle, pod, nodes.objects) if known is None else known
        if isinstance(requested, Status):
            return reject_all_nodes(self.name, nodes, requested)
        cycle.write(_REQUESTED_VOLUMES, requested)
        csi_nodes = nodes.objects.of(CSINode)
        if requested.untranslatable and any(csi_nodes.get("", name) is not None for name in nodes.names):
            return reject_all_nodes(self.name, nodes, Status(Code.ERROR, (requested.untranslatable,)))
        exceeded = self._exceeding(requested, nodes)
        missing = [*self._missing_drivers(requested, nodes)]
        if not missing:
            return ALL if exceeded is None else refuse_where(exceeded, TOO_MANY_VOLUMES)
        reasons = [Reason((TOO_MANY_VOLUMES,))]
        codes = np.zeros(len(nodes), np.int32) if exceeded is None else exceeded.astype(np.int32)
        for driver, where in reversed(missing):  # The first one that is missing is the reason.
            reasons.append(Reason((NOT_INSTALLED.format(driver=driver),)))
            codes[where] = len(reasons)
        return FilterResult(codes, tuple(reasons))

    def _missing_drivers(
        self, requested: RequestedVolumes, nodes: Nodes
    ) -> Iterable[tuple[str, NDArray[np.bool_]]]:
        return () if self._missing is None else self._missing.of(requested.volumes, nodes)

    def _exceeding(self, requested: RequestedVolumes, nodes: Nodes) -> NDArray[np.bool_] | None:
        """The nodes where a limit would be exceeded. Shape (nodes,); None: nowhere."""
        brought = self._brought(requested, nodes.objects)
        if not brought:
            return None
        doubtful = np.flatnonzero(self._room.lacking(brought, nodes))
        if not len(doubtful):
            return None
        exceeded = np.zeros(len(nodes), bool)
        exceeded[doubtful] = self._exceed(requested, brought, nodes.at(doubtful))
        return exceeded

    def _brought(self, requested: RequestedVolumes, objects: Objects) -> dict[str, int]:
        """How many volumes a pod brings of each driver that has a limit on any node."""
        limited = self._room.limited_drivers(objects)
        brought: dict[str, int] = {}
        for driver, _ in requested.volumes:
            if driver in limited:
                brought[driver] = brought.get(driver, 0) + 1
        return brought

    def _exceed(
        self, requested: RequestedVolumes, brought: dict[str, int], nodes: Nodes
    ) -> NDArray[np.bool_]:
        """The nodes where a limit would be exceeded. Shape (nodes,)."""
        limits = {driver: self._room.limits(driver, nodes) for driver in brought}
        if nodes.hypothetical_pods is None:
            return self._in_use.exceed(requested.volumes, limits, nodes.row_numbers(), nodes.snapshot)
        attachments, attached = nodes.objects.of(VolumeAttachment), self._room.attached.objects
        claims, disks = nodes.claims, nodes.disks
        exceeded = np.zeros(len(nodes), bool)
        for index, name in enumerate(nodes.names):
            in_use = NodeVolumesInUse(
                claims.vocabulary.values[claims.codes[index]] or (),
                disks.vocabulary.values[disks.codes[index]] or (),
                attached.members(attachments, name),
                nodes.objects,
            )
            limits_here = {driver: int(limit[index]) for driver, limit in limits.items()}
            exceeded[index] = in_use.exceeds(requested.volumes, limits_here)
        return exceeded


def _disks(pod: Pod) -> list[MigratedDisk]:
    """The disks that a pod names itself and that CSI drivers attach now."""
    return [disk for volume in pod.spec.volumes if (disk := migrated_disk(volume)) is not None]


def _raises_limit(pod: Pod, old: CSINode, new: CSINode) -> bool:
    """Whether a driver takes more volumes than before; one without a limit takes all."""
    before, after = limits_of((old,)), limits_of((new,))
    return any(after.get(driver, NO_LIMIT) > before.get(driver, 0) for driver in before.keys() | after.keys())


def _frees_volume(pod: Pod, old: Pod, new: None) -> bool:
    return is_placed(old) and (old.has_claims or bool(_disks(old)))


def _is_its_claim(pod: Pod, old: None, new: PersistentVolumeClaim) -> bool:
    return uses_claim(pod, new)


def _detaches(pod: Pod, old: VolumeAttachment, new: None) -> bool:
    """Which volume a claim needs is not looked up: any detached volume may make room for it."""
    drivers = (migration_of(disk).driver for disk in _disks(pod))
    return pod.has_claims or old.spec.attacher in drivers
