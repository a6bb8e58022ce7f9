"""In-tree volumes, translated to the CSI drivers that replaced the in-tree drivers.

A cluster may still have volumes with in-tree sources. Plugins that count volumes or check
where they are accessible must see them as the CSI driver does: with its name, handle and topology label.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from msgspec.structs import replace

from moorage.api.base import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.labels import BETA_REGION, BETA_ZONE, REGION, ZONE
from moorage.api.storage import (
    AWSElasticBlockStore,
    AzureDisk,
    Cinder,
    GCEPersistentDisk,
    PersistentVolume,
    PersistentVolumeSource,
    PortworxVolume,
)
from moorage.plugins.volumes.persistent_volume_claims import VolumeError

MigratedDisk = AWSElasticBlockStore | GCEPersistentDisk | AzureDisk | Cinder | PortworxVolume

SEPARATOR = "__"
"""Between the zones in a label of a volume that is in several."""

_UNSPECIFIED = "UNSPECIFIED"
_EBS_ID = re.compile(r"vol-[^/]*")
_AZURE_MANAGED = "managed"


class TranslationError(VolumeError):
    """A volume that cannot be translated for its CSI driver."""


@dataclass(frozen=True, slots=True)
class Migration:
    """An in-tree driver's name, its CSI driver, and the latter's topology label for zones (if any)."""

    old_name: str
    driver: str
    zone_label: str = ""


_MIGRATIONS: dict[type, Migration] = {
    AWSElasticBlockStore: Migration(
        "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
    ),
    GCEPersistentDisk: Migration("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"),
    AzureDisk: Migration("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    Cinder: Migration(
        "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
    ),
    PortworxVolume: Migration("kubernetes.io/portworx-volume", "pxd.portworx.com"),
}

DRIVER_OF: dict[str, str] = {migration.old_name: migration.driver for migration in _MIGRATIONS.values()}
"""The CSI driver that replaces each in-tree driver."""


def migrated_disk(source: PersistentVolumeSource) -> MigratedDisk | None:
    """The in-tree disk of a volume, if it has one."""
    return (
        source.aws_elastic_block_store
        or source.gce_persistent_disk
        or source.azure_disk
        or source.cinder
        or source.portworx_volume
    )


def migration_of(disk: MigratedDisk) -> Migration:
    """The migration of a disk's driver."""
    return _MIGRATIONS[type(disk)]


def volume_handle(disk: MigratedDisk, zones: str = "") -> str:
    """The CSI volume handle of a disk; `zones` is the zone label of its persistent volume."""
    match disk:
        case AWSElasticBlockStore():
            return _ebs_handle(disk.volume_id)
        case GCEPersistentDisk():
            return f"projects/{_UNSPECIFIED}/{_gce_location(zones)}/disks/{disk.pd_name}"
        case AzureDisk():
            if disk.kind is not None and disk.kind.lower() != _AZURE_MANAGED:
                raise TranslationError(f"kind({disk.kind}) is not supported in csi migration")
            return disk.disk_uri
        case Cinder() | PortworxVolume():
            return disk.volume_id


def persistent_handle(volume: PersistentVolume, disk: MigratedDisk) -> str:
    """The CSI volume handle of the disk of a persistent volume."""
    labels = volume.labels
    return volume_handle(disk, labels.get(BETA_ZONE) or labels.get(ZONE) or "")


def _ebs_handle(volume_id: str) -> str:
    if not volume_id.startswith("aws://"):
        return volume_id
    handle = urlsplit(volume_id).path.strip("/")
    if not _EBS_ID.fullmatch(handle):
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
        )
    return handle


def _gce_location(label: str) -> str:
    """Where a disk is: in a zone, or in the region of several zones."""
    zones = label.split(SEPARATOR)
    if len(zones) == 1:
        return f"zones/{label or _UNSPECIFIED}"
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, "
                f"expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        raise TranslationError(
            "failed to get region from zones: multiple or no regions gotten from zones, got: "
            f"map[{' '.join(f'{region}:{{}}' for region in sorted(regions))}]"
        )
    return f"regions/{regions.pop()}"


def migrated_affinity(volume: PersistentVolume, disk: MigratedDisk) -> NodeSelector | None:
    """The node affinity of a volume with the topology labels of its CSI driver.

    Zone labels in the affinity are replaced by the driver's label; if there are none, the volume's own zone
    label is used. The beta label for regions is replaced by the current one. Raises TranslationError where
    the volume cannot be translated at all.
    """
    persistent_handle(volume, disk)
    affinity = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    if affinity is None and not volume.labels:
        return None
    zone_label = migration_of(disk).zone_label
    if not zone_label:
        return affinity
    terms = affinity.node_selector_terms if affinity is not None else ()
    zone, old = _zone_label_in_use(terms, volume)
    renamed = {BETA_REGION: REGION} if old and _values(terms, BETA_REGION) else {}
    if _values(terms, zone):
        renamed[zone] = zone_label
    elif zones := {name.strip() for name in volume.labels.get(zone, "").split(SEPARATOR)} - {""}:
        added = NodeSelectorRequirement(key=zone_label, operator="In", values=tuple(sorted(zones)))
        terms = tuple(
            replace(term, match_expressions=(*term.match_expressions, added))
            for term in terms or (NodeSelectorTerm(),)
        )
    if affinity is None and not terms:
        return None
    return NodeSelector(node_selector_terms=tuple(_renamed(term, renamed) for term in terms))


def _zone_label_in_use(terms: tuple[NodeSelectorTerm, ...], volume: PersistentVolume) -> tuple[str, bool]:
    """Which of the two zone labels a volume uses, and whether that is the old one."""
    keys = {expression.key for term in terms for expression in term.match_expressions}
    for used in (keys, volume.labels):
        if ZONE in used:
            return ZONE, False
        if BETA_ZONE in used:
            return BETA_ZONE, True
    return ZONE, False


def _values(terms: tuple[NodeSelectorTerm, ...], key: str) -> bool:
    """Whether any expression gives values for a label."""
    return any(each.key == key and each.values for term in terms for each in term.match_expressions)


def _renamed(term: NodeSelectorTerm, names: dict[str, str]) -> NodeSelectorTerm:
    return replace(
        term,
        match_expressions=tuple(
            replace(each, key=names.get(each.key, each.key)) for each in term.match_expressions
        ),
    )
