"""Volumes, the claims on them, and what provides them."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage.api.persistent_volumes import class_of, is_default_class
from moorage_cluster.apiserver.tables.base import NAME, Printer
from moorage_cluster.apiserver.tables.cells import (
    NONE,
    UNSET,
    at,
    being_deleted,
    comma_separated,
    items,
    text,
    texts,
)
from moorage_cluster.apiserver.tables.columns import (
    AGED,
    NAME_AND_CREATION,
    NAMED,
    Columns,
    Shown,
    derived,
    flag_at,
    name_of,
    size_of,
    text_at,
)

_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _access_modes(modes: list[str]) -> str:
    return comma_separated(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def _phase(obj: Manifest) -> str:
    return "Terminating" if being_deleted(obj) else text(obj, "status", "phase")


def _claim_of(volume: Manifest) -> str:
    if at(volume, "spec", "claimRef") is None:
        return ""
    return f"{text(volume, 'spec', 'claimRef', 'namespace')}/{text(volume, 'spec', 'claimRef', 'name')}"


def _size(obj: Manifest, part: str) -> str:
    return text(obj, part, "capacity", "storage") or "0"


def _of_bound(cell: str, claim: Manifest) -> str:
    """A claim's size and modes are its volume's: without a volume it has none."""
    return cell if text(claim, "spec", "volumeName") else ""


def _name_of_class(storage_class: Manifest) -> str:
    name = name_of(storage_class)
    return f"{name} (default)" if is_default_class(storage_class) else name


def _audiences(driver: Manifest) -> str:
    if at(driver, "spec", "tokenRequests") is None:
        return UNSET
    return comma_separated(text(each, "audience") for each in items(driver, "spec", "tokenRequests"))


_PHASE = derived("Status", _phase, "Where it is in its life.")
_CLASS = derived("StorageClass", lambda obj: class_of(obj) or "", "Its storage class.")
_ATTRIBUTES_CLASS = text_at(
    "VolumeAttributesClass",
    "spec.volumeAttributesClassName",
    "Its class of changeable attributes.",
    missing=UNSET,
)
_MODE = text_at(
    "VolumeMode", "spec.volumeMode", "Whether it is a file system or a raw device.", missing=UNSET, wide=True
)

_CLAIMS_AND_VOLUMES: Final[dict[tuple[str, str], Printer]] = {
    ("", "PersistentVolume"): Columns(
        NAMED,
        derived("Capacity", lambda obj: _size(obj, "spec"), "How much it holds."),
        derived(
            "Access Modes",
            lambda obj: _access_modes(texts(obj, "spec", "accessModes")),
            "How it can be mounted.",
        ),
        text_at("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", "What follows the end of its claim."),
        _PHASE,
        derived("Claim", _claim_of, "The claim that it is bound to."),
        _CLASS,
        _ATTRIBUTES_CLASS,
        text_at("Reason", "status.reason", "Why it failed, if it did."),
        AGED,
        _MODE,
    ),
    ("", "PersistentVolumeClaim"): Columns(
        NAMED,
        _PHASE,
        text_at("Volume", "spec.volumeName", "The volume that it is bound to."),
        derived("Capacity", lambda obj: _of_bound(_size(obj, "status"), obj), "How much its volume holds."),
        derived(
            "Access Modes",
            lambda obj: _of_bound(_access_modes(texts(obj, "status", "accessModes")), obj),
            "How its volume can be mounted.",
        ),
        _CLASS,
        _ATTRIBUTES_CLASS,
        AGED,
        _MODE,
    ),
}

PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    **_CLAIMS_AND_VOLUMES,
    ("storage.k8s.io", "StorageClass"): Columns(
        Shown(NAME, lambda obj, _: _name_of_class(obj)),
        text_at("Provisioner", "provisioner", "What makes its volumes."),
        text_at("ReclaimPolicy", "reclaimPolicy", "What follows the end of a claim.", missing="Delete"),
        text_at("VolumeBindingMode", "volumeBindingMode", "When volumes are chosen.", missing="Immediate"),
        flag_at("AllowVolumeExpansion", "allowVolumeExpansion", "Whether volumes can grow.", type="string"),
        AGED,
    ),
    ("storage.k8s.io", "VolumeAttributesClass"): Columns(
        NAMED, text_at("DriverName", "driverName", "The driver that knows the attributes."), AGED
    ),
    ("storage.k8s.io", "VolumeAttachment"): Columns(
        NAMED,
        text_at("Attacher", "spec.attacher", "The driver that attaches the volume.", format="name"),
        text_at("PV", "spec.source.persistentVolumeName", "The volume."),
        text_at("Node", "spec.nodeName", "The node that it is attached to."),
        flag_at("Attached", "status.attached", "Whether it is attached."),
        AGED,
    ),
    ("storage.k8s.io", "CSINode"): Columns(
        NAMED, size_of("Drivers", "spec.drivers", "How many drivers the node has."), AGED
    ),
    ("storage.k8s.io", "CSIDriver"): Columns(
        NAMED,
        flag_at("AttachRequired", "spec.attachRequired", "Whether volumes are attached first.", default=True),
        flag_at("PodInfoOnMount", "spec.podInfoOnMount", "Whether it is told of the pod."),
        flag_at("StorageCapacity", "spec.storageCapacity", "Whether it publishes free space."),
        derived("TokenRequests", _audiences, "For whom it gets tokens of the pod."),
        flag_at("RequiresRepublish", "spec.requiresRepublish", "Whether it wants to be called again."),
        derived(
            "Modes",
            lambda obj: comma_separated(texts(obj, "spec", "volumeLifecycleModes")) or NONE,
            "The kinds of volumes it makes.",
        ),
        AGED,
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): NAME_AND_CREATION,
}
"""The tables of this family, by group and kind."""
