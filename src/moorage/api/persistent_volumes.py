"""Volumes and claims: the rules that the scheduler and the PersistentVolume controller share.

In Kubernetes they are in component-helpers/storage/volume. Both choose volumes with `matching_volumes`:
VolumeBinding for each node (`plugins/volume_binding/matching.py`), the controller for each set of access
modes (`controllers/volume_matching.py` in the laptop cluster).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from moorage.api.base import ResourceList
from moorage.api.manifests import Manifest, annotations_of
from moorage.api.selectors import EVERYTHING, Selector, SelectorError, label_selector
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""On a claim: its binding is finished. The value is ignored."""
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""On a volume or claim: the binding was made by a controller or the scheduler, not by the user."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""On a claim: the node to provision its volume for."""
BETA_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""On a volume or claim: its storage class, in the deprecated annotation."""
DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
"""On a storage class, either of them: claims that name no class get this one."""

WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
STORAGE: Final = "storage"
AVAILABLE: Final = "Available"
FILESYSTEM: Final = "Filesystem"


def class_of(obj: Manifest) -> str | None:
    """The storage class that a volume or claim names; None, other than empty, is replaced by the default."""
    return _class_name(annotations_of(obj), (obj.get("spec") or {}).get("storageClassName"))


def claim_class(claim: PersistentVolumeClaim) -> str:
    """The name of a claim's storage class; empty if it has none."""
    return _class_name(claim.metadata.annotations, claim.spec.storage_class_name) or ""


def volume_class(volume: PersistentVolume) -> str:
    """The name of a volume's storage class; empty if it has none."""
    return _class_name(volume.metadata.annotations, volume.spec.storage_class_name) or ""


def _class_name(annotations: Mapping[str, str], name: str | None) -> str | None:
    """The annotation takes precedence over the field, even if it is empty."""
    return annotations.get(BETA_STORAGE_CLASS, name)


def is_default_class(storage_class: Manifest) -> bool:
    """Whether claims that name no class get this one."""
    annotations = annotations_of(storage_class)
    return any(annotations.get(key) == "true" for key in DEFAULT_CLASS)


def storage_size(amounts: ResourceList) -> int:
    """How much storage is requested or offered, in billionths of a byte."""
    return amounts.get(STORAGE, 0)


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim is fully bound to its volume."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is bound to a claim, or reserved for it by name."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.namespace, claim.name):
        return False
    return reference.uid in ("", claim.metadata.uid)


def has_volume_mode(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether both are file systems, or both are block devices."""
    return (volume.spec.volume_mode or FILESYSTEM) == (claim.spec.volume_mode or FILESYSTEM)


def has_attributes_class(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether both name the same volume attributes class, or none."""
    offered, wanted = volume.spec.volume_attributes_class_name, claim.spec.volume_attributes_class_name
    return (offered or "") == (wanted or "")


def has_access_modes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume can be mounted in every way that a claim asks for."""
    return set(claim.spec.access_modes).issubset(volume.spec.access_modes)


def matching_volumes(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]
) -> list[PersistentVolume]:
    """The volumes that a claim may take, of those of its class; one that is reserved for it is the only one.

    The smallest come first, and equal ones by name. Raises SelectorError for a malformed selector.
    """
    selector = _selector(claim)
    wanted = storage_size(claim.spec.resources.requests)
    fitting = [volume for volume in volumes if _fits(volume, claim, wanted)]
    fitting.sort(key=lambda volume: (storage_size(volume.spec.capacity), volume.name))
    reserved = [volume for volume in fitting if volume.spec.claim_ref is not None]
    if reserved:
        return reserved[:1]
    modes = set(claim.spec.access_modes)
    return [
        volume
        for volume in fitting
        if volume.status.phase == AVAILABLE
        and selector.matches(volume.labels)
        and modes.issubset(volume.spec.access_modes)
    ]


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim, wanted: int) -> bool:
    """The conditions that also a volume reserved for the claim must meet."""
    return (
        (volume.spec.claim_ref is None or is_bound_to(volume, claim))
        and storage_size(volume.spec.capacity) >= wanted
        and has_volume_mode(volume, claim)
        and has_attributes_class(volume, claim)
        and volume.metadata.deletion_timestamp is None
    )


def _selector(claim: PersistentVolumeClaim) -> Selector:
    if claim.spec.selector is None:
        return EVERYTHING
    try:
        return label_selector(claim.spec.selector)
    except SelectorError as error:
        problem = f"error creating internal label selector for claim: {claim.key}: {error}"
        raise SelectorError("", problem) from error
