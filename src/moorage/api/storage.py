"""Volumes, claims, storage classes and what CSI drivers report."""

from __future__ import annotations

from msgspec import field

from moorage.api.base import (
    LabelSelector,
    NodeSelector,
    Object,
    ObjectReference,
    ResourceList,
    Struct,
)
from moorage.api.quantity import Quantity


class GCEPersistentDisk(Struct):
    """A Google persistent disk."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStore(Struct):
    """An Amazon EBS volume."""

    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class AzureDisk(Struct):
    """An Azure disk."""

    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None
    read_only: bool = False


class Cinder(Struct):
    """An OpenStack Cinder volume."""

    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class PortworxVolume(Struct):
    """A Portworx volume."""

    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class RBD(Struct):
    """A Ceph block device."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class ISCSI(Struct):
    """An iSCSI disk."""

    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    read_only: bool = False


class CSIVolume(Struct):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


class PersistentVolumeSource(Struct):
    """Where a volume's data is; only the sources that placement depends on."""

    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: Cinder | None = None
    portworx_volume: PortworxVolume | None = None
    rbd: RBD | None = None
    iscsi: ISCSI | None = None
    csi: CSIVolume | None = None


class VolumeNodeAffinity(Struct):
    """Which nodes can reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(PersistentVolumeSource):
    """The properties of a volume and the claim it is bound to."""

    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(Struct):
    """Whether a volume is free."""

    phase: str = ""


class PersistentVolume(Object):
    """A volume that outlives pods."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class VolumeResources(Struct):
    """How much storage a claim asks for."""

    requests: ResourceList = {}


class PersistentVolumeClaimSpec(Struct):
    """What a claim asks for."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Struct):
    """The status of a claim."""

    phase: str = ""


class PersistentVolumeClaim(Object):
    """A request for a volume."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologySelectorLabelRequirement(Struct):
    """A label and the values a provisioner may choose."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Struct):
    """Where a provisioner may place a volume."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(Object):
    """A way to provision volumes."""

    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Struct):
    """How many volumes of a driver a node takes."""

    count: int | None = None


class CSINodeDriver(Struct):
    """A CSI driver on a node."""

    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Struct):
    """The CSI drivers on a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Object):
    """What CSI drivers report about a node; it has the node's name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Struct):
    """The settings of a CSI driver."""

    storage_capacity: bool = False
    attach_required: bool = True
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(Object):
    """A CSI driver."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Object):
    """How much a driver can still provision in a part of the cluster."""

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Struct):
    """What is attached."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Struct):
    """What is attached where."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Struct):
    """Whether it is attached yet."""

    attached: bool = False


class VolumeAttachment(Object):
    """A volume that is attached, or being attached, to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
