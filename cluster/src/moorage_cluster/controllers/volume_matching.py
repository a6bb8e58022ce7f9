"""Matching of claims and volumes by the PersistentVolume controller."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.api.base import ResourceList
from moorage.api.persistent_volumes import (
    STORAGE,
    claim_class,
    has_access_modes,
    has_attributes_class,
    has_volume_mode,
    matching_volumes,
    volume_class,
)
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim


def best_match(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> PersistentVolume | None:
    """The volume for a claim: of those with the fewest access modes, one reserved for it or the smallest.

    The volumes are those of its class, and any that are reserved for it.
    """
    by_modes: dict[tuple[str, ...], list[PersistentVolume]] = {}
    for volume in volumes:
        if has_access_modes(volume, claim):
            by_modes.setdefault(tuple(sorted(volume.spec.access_modes)), []).append(volume)
    for modes in sorted(by_modes, key=lambda each: (len(each), each)):
        found = matching_volumes(claim, by_modes[modes])
        if found:
            return found[0]
    return None


def mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Why a claim cannot be bound to the volume that it names; empty if it can."""
    if volume.metadata.deletion_timestamp is not None:
        return f'the volume is marked for deletion "{volume.name}"'
    if _bytes(volume.spec.capacity) < _bytes(claim.spec.resources.requests):
        return "requested PV is too small"
    if volume_class(volume) != claim_class(claim):
        return "storageClassName does not match"
    if not has_attributes_class(volume, claim):
        return "volumeAttributesClassName does not match"
    if not has_volume_mode(volume, claim):
        return "incompatible volumeMode"
    if not has_access_modes(volume, claim):
        return "incompatible accessMode"
    return ""


def _bytes(amounts: ResourceList) -> int:
    """Storage in whole bytes, rounded up."""
    return amounts[STORAGE].value if STORAGE in amounts else 0
