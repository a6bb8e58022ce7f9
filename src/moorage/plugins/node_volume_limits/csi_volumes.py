"""The CSI volumes behind claims, disks and attachments, each identified by its driver and handle."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from moorage.api.persistent_volumes import claim_class
from moorage.api.pod import Pod
from moorage.api.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_table import Disk
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.status import Code, Status, unresolvable
from moorage.plugins.volumes.csi_migration import (
    DRIVER_OF,
    MigratedDisk,
    TranslationError,
    migrated_disk,
    migration_of,
    persistent_handle,
    volume_handle,
)
from moorage.plugins.volumes.persistent_volume_claims import (
    CLAIM_WITHOUT_NAME,
    find_claims,
    foreign_claim,
    not_found,
)

CSIVolumeId = tuple[str, str]
"""A CSI driver and its handle of a volume."""


@dataclass(slots=True)
class RequestedVolumes:
    """The CSI volumes of a pod; `untranslatable` is the reason why one of them cannot be counted."""

    volumes: set[CSIVolumeId] = field(default_factory=set)
    untranslatable: str = ""


def requested_volumes(cycle: CycleState, pod: Pod, objects: Objects) -> RequestedVolumes | Status:
    """The CSI volumes of a pod's claims and disks, or why the pod is rejected on all nodes."""
    requested = RequestedVolumes()
    for name, ephemeral, claim, volume in find_claims(cycle, pod, objects):
        if not name:
            return Status(Code.ERROR, (CLAIM_WITHOUT_NAME,))
        if claim is None:
            missing = not_found("persistentvolumeclaim", name)
            return unresolvable(f"looking up PVC {pod.namespace}/{name}: {missing}")
        if ephemeral and (problem := foreign_claim(pod, claim)):
            return Status(Code.ERROR, (problem,))
        if (csi_volume := volume_of_claim(claim, volume, objects)) is not None:
            requested.volumes.add(csi_volume)
    for volume_source in pod.spec.volumes:
        disk = migrated_disk(volume_source)
        if disk is not None:
            try:
                requested.volumes.add((migration_of(disk).driver, volume_handle(disk)))
            except TranslationError as error:
                problem = f"converting volume({volume_source.name}) from inline to csi: {error}"
                requested.untranslatable = problem
    return requested


def volume_of_claim(
    claim: PersistentVolumeClaim, volume: PersistentVolume | None, objects: Objects
) -> CSIVolumeId | None:
    """The CSI volume behind a claim: its volume's, or one still to be made by the class' provisioner.

    volume: the volume that the claim names; None if it names none, or the volume does not exist.
    """
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


def volumes_of_disks(disks: Iterable[Disk]) -> set[CSIVolumeId]:
    """The CSI volumes of disks that pods name themselves; those that no CSI driver takes are left out."""
    found: set[CSIVolumeId] = set()
    for disk in disks:
        if isinstance(disk, MigratedDisk):
            with suppress(TranslationError):
                found.add((migration_of(disk).driver, volume_handle(disk)))
    return found


def attached_volume(attachment: VolumeAttachment, volume: PersistentVolume | None) -> CSIVolumeId | None:
    """The CSI volume of an attachment. volume: the persistent volume that it names, if that exists."""
    if not attachment.spec.attacher or volume is None or volume.spec.csi is None:
        return None
    return attachment.spec.attacher, volume.spec.csi.volume_handle
