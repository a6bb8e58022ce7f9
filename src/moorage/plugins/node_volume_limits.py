"""NodeVolumeLimits: a CSI driver can attach a limited number of volumes to a node.

The limit is in the node's CSINode. In use are the volumes of the pods on the node, each counted once even if
several pods share it, and further volumes in VolumeAttachments. A node far below its limit passes by counting
claims alone; the driver of each claim is looked up only where that is not enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moorage.api.persistent_volumes import claim_class
from moorage.api.pod import Pod
from moorage.api.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from moorage.client import kinds
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import NODE_FOR_ANY_POD, DependsOn
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.filter_result import ALL, FilterResult, refuse_where
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Code, Status, unresolvable
from moorage.plugins.hint_helpers import USES_CLAIM, is_placed, uses_claim
from moorage.plugins.volumes.csi_migration import (
    DRIVER_OF,
    MigratedDisk,
    TranslationError,
    migrated_disk,
    migration_of,
    persistent_handle,
    volume_handle,
)
from moorage.plugins.volumes.node_columns import HeldVolumes, NodeColumns
from moorage.plugins.volumes.persistent_volume_claims import (
    CLAIM_WITHOUT_NAME,
    VOLUME_KINDS,
    claim_uses,
    foreign_claim,
    is_without_storage,
    not_found,
    reject_all_nodes,
)

TOO_MANY_VOLUMES = "node(s) exceed max volume count"

_NO_LIMIT = np.iinfo(np.int64).max

CSIVolumeId = tuple[str, str]
"""A CSI driver and its handle of a volume."""


@dataclass(slots=True)
class _RequestedVolumes:
    """The CSI volumes of a pod; `untranslatable` is the reason why one of them cannot be counted."""

    volumes: set[CSIVolumeId] = field(default_factory=set)
    untranslatable: str = ""


_REQUESTED_VOLUMES: StateKey[_RequestedVolumes] = StateKey("NodeVolumeLimits/filter")


def _limits(csi_nodes: Iterable[CSINode]) -> dict[str, int]:
    """How many volumes of each driver a node takes, where that is limited."""
    return {
        driver.name: driver.allocatable.count
        for csi_node in csi_nodes
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


_ALL_DRIVERS = ""


def _attached_count(attachments: Collection[VolumeAttachment]) -> dict[str, int]:
    """Number of volumes attached to a node, of all drivers."""
    return {_ALL_DRIVERS: len(attachments)}


class NodeVolumeLimits:
    """Counts volumes where a limit could be reached."""

    name = "NodeVolumeLimits"
    watched_kinds: tuple[Kind, ...] = (
        *VOLUME_KINDS,
        kinds.CSI_NODE,
        kinds.CSI_DRIVER,
        kinds.VOLUME_ATTACHMENT,
    )

    def __init__(self) -> None:
        self._limits: NodeColumns[CSINode] = NodeColumns(
            lambda csi_node: csi_node.name, _limits, absent=_NO_LIMIT
        )
        self._attached: NodeColumns[VolumeAttachment] = NodeColumns(
            lambda attachment: attachment.spec.node_name, _attached_count
        )
        self._held = HeldVolumes()

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
        if not pod.has_claims and not _disks(pod):
            return SKIP
        wanted = _wanted(pod, nodes.objects)
        if isinstance(wanted, Status):
            return None  # The filter rejects the pod.
        cycle.write(_REQUESTED_VOLUMES, wanted)
        if wanted.untranslatable or self._near_limit(self._brought(wanted, nodes), nodes).any():
            return None
        return SKIP

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Reject nodes where a driver's limit would be exceeded."""
        known = cycle.read(_REQUESTED_VOLUMES)
        wanted = _wanted(pod, nodes.objects) if known is None else known
        if isinstance(wanted, Status):
            return reject_all_nodes(self.name, nodes, wanted)
        cycle.write(_REQUESTED_VOLUMES, wanted)
        csi_nodes = nodes.objects.of(CSINode)
        if wanted.untranslatable and any(csi_nodes.get("", name) is not None for name in nodes.names):
            return reject_all_nodes(self.name, nodes, Status(Code.ERROR, (wanted.untranslatable,)))
        brought = self._brought(wanted, nodes)
        doubtful = np.flatnonzero(self._near_limit(brought, nodes)).tolist()
        if not doubtful:
            return ALL
        allowed = {driver: self._limits.column(csi_nodes, driver, nodes) for driver in brought}
        refused = np.zeros(len(nodes), bool)
        in_use, attachments = _InUse(nodes), nodes.objects.of(VolumeAttachment)
        for index in doubtful:
            attached = self._attached.on_node(attachments, nodes.name(index))
            needed = in_use.with_new(index, wanted.volumes, attached)
            refused[index] = any(needed[driver] > limit[index] for driver, limit in allowed.items())
        return refuse_where(refused, TOO_MANY_VOLUMES)

    def _brought(self, wanted: _RequestedVolumes, nodes: Nodes) -> Counter[str]:
        """How many volumes a pod brings of each driver that has a limit on any node."""
        limits = self._limits.subjects(nodes.objects.of(CSINode))
        return Counter(driver for driver, _ in wanted.volumes if driver in limits)

    def _near_limit(self, brought: Counter[str], nodes: Nodes) -> NDArray[np.bool_]:
        """The nodes where a limit may be exceeded; on all others it is not. Shape (nodes,)."""
        near = np.zeros(len(nodes), bool)
        if brought:
            attachments, csi_nodes = nodes.objects.of(VolumeAttachment), nodes.objects.of(CSINode)
            most = self._held.count(nodes)
            if len(attachments):
                most = most + self._attached.column(attachments, _ALL_DRIVERS, nodes)
            for driver, count in brought.items():
                near |= most + count > self._limits.column(csi_nodes, driver, nodes)
        return near


def _disks(pod: Pod) -> list[MigratedDisk]:
    """The disks that a pod names itself and that CSI drivers attach now."""
    return [disk for volume in pod.spec.volumes if (disk := migrated_disk(volume)) is not None]


def _wanted(pod: Pod, objects: Objects) -> _RequestedVolumes | Status:
    claims = objects.of(PersistentVolumeClaim)
    wanted = _RequestedVolumes()
    for use in claim_uses(pod):
        if not use.name:
            return Status(Code.ERROR, (CLAIM_WITHOUT_NAME,))
        claim = claims.get(pod.namespace, use.name)
        if claim is None:
            missing = not_found("persistentvolumeclaim", use.name)
            return unresolvable(f"looking up PVC {pod.namespace}/{use.name}: {missing}")
        if use.ephemeral and (problem := foreign_claim(pod, claim)):
            return Status(Code.ERROR, (problem,))
        if (volume := claimed_volume(claim, objects)) is not None:
            wanted.volumes.add(volume)
    for volume_source in pod.spec.volumes:
        disk = migrated_disk(volume_source)
        if disk is not None:
            try:
                wanted.volumes.add((migration_of(disk).driver, volume_handle(disk)))
            except TranslationError as error:
                wanted.untranslatable = f"converting volume({volume_source.name}) from inline to csi: {error}"
    return wanted


def claimed_volume(claim: PersistentVolumeClaim, objects: Objects) -> CSIVolumeId | None:
    """The CSI volume behind a claim: its volume's, or one still to be made by the class' provisioner."""
    volume = objects.of(PersistentVolume).get("", claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is None:
        storage_class = objects.of(StorageClass).get("", claim_class(claim))
        if storage_class is None or not storage_class.provisioner:
            return None
        provisioner = storage_class.provisioner
        return DRIVER_OF.get(provisioner, provisioner), f"to be made for {claim.key}"
    if volume.spec.csi is not None:
        csi = volume.spec.csi
        return (csi.driver, csi.volume_handle) if csi.driver and csi.volume_handle else None
    disk = migrated_disk(volume.spec)
    if disk is None:
        return None
    try:
        handle = persistent_handle(volume, disk)
    except TranslationError:
        return None
    return (migration_of(disk).driver, handle) if handle else None


class _InUse:
    """The CSI volumes in use on the nodes of a view; every claim is looked up once."""

    def __init__(self, nodes: Nodes) -> None:
        self._objects = nodes.objects
        self._claims, self._disks = nodes.claims, nodes.disks
        self._known: dict[str, CSIVolumeId | None] = {}

    def with_new(
        self, index: int, wanted: set[CSIVolumeId], attached: Iterable[VolumeAttachment]
    ) -> Counter[str]:
        """How many volumes a node would have of each driver that gets a new one.

        A volume that is attached without a pod on the node using it counts in addition to the new one, even
        if it is the same volume.
        """
        used = self._used_by_pods(index)
        needed = Counter(driver for driver, _ in wanted - used)
        needed.update(driver for driver, _ in used | self._attached(attached) if driver in needed)
        return needed

    def _used_by_pods(self, index: int) -> set[CSIVolumeId]:
        claims = self._claims.vocabulary.values[self._claims.codes[index]] or ()
        disks = self._disks.vocabulary.values[self._disks.codes[index]] or ()
        used = {volume for key in claims if (volume := self._volume_of_claim(key)) is not None}
        for disk in disks:
            if isinstance(disk, MigratedDisk):
                with suppress(TranslationError):
                    used.add((migration_of(disk).driver, volume_handle(disk)))
        return used

    def _volume_of_claim(self, key: str) -> CSIVolumeId | None:
        if key not in self._known:
            claim = self._objects.of(PersistentVolumeClaim).get(*key.split("/", 1))
            self._known[key] = None if claim is None else claimed_volume(claim, self._objects)
        return self._known[key]

    def _attached(self, attached: Iterable[VolumeAttachment]) -> set[CSIVolumeId]:
        volumes = self._objects.of(PersistentVolume)
        found = (
            (each.spec.attacher, volumes.get("", each.spec.source.persistent_volume_name or ""))
            for each in attached
        )
        return {
            (attacher, volume.spec.csi.volume_handle)
            for attacher, volume in found
            if attacher and volume is not None and volume.spec.csi is not None
        }


def _raises_limit(pod: Pod, old: CSINode, new: CSINode) -> bool:
    """Whether a driver takes more volumes than before; one without a limit takes all."""
    before, after = _limits((old,)), _limits((new,))
    return any(
        after.get(driver, _NO_LIMIT) > before.get(driver, 0) for driver in before.keys() | after.keys()
    )


def _frees_volume(pod: Pod, old: Pod, new: None) -> bool:
    return is_placed(old) and (old.has_claims or bool(_disks(old)))


def _is_its_claim(pod: Pod, old: None, new: PersistentVolumeClaim) -> bool:
    return uses_claim(pod, new)


def _detaches(pod: Pod, old: VolumeAttachment, new: None) -> bool:
    """Which volume a claim needs is not looked up: any detached volume may make room for it."""
    drivers = (migration_of(disk).driver for disk in _disks(pod))
    return pod.has_claims or old.spec.attacher in drivers
