"""Matching of claims and volumes for immediate binding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.api.manifests import Manifest, labels_of
from moorage.api.selectors import sound_selector
from moorage_cluster.controllers.volume_facts import (
    claim_class,
    is_bound_to,
    offered_storage,
    phase_of,
    volume_class,
    wanted_storage,
)

_FILESYSTEM: Final = "Filesystem"


def best_match(claim: Manifest, volumes: Iterable[Manifest]) -> Manifest | None:
    """The volume for a claim: of those with the fewest access modes, one reserved for it or the smallest.

    The volumes are those of its class, and any that are reserved for it.
    """
    wanted = set(claim["spec"].get("accessModes") or ())
    by_modes: dict[tuple[str, ...], list[Manifest]] = {}
    for volume in volumes:
        modes = volume["spec"].get("accessModes") or ()
        if wanted.issubset(modes) and _could_hold(volume, claim):
            by_modes.setdefault(tuple(sorted(modes)), []).append(volume)
    for modes in sorted(by_modes, key=lambda each: (len(each), each)):
        found = _best(claim, by_modes[modes])
        if found is not None:
            return found
    return None


def _best(claim: Manifest, volumes: list[Manifest]) -> Manifest | None:
    kept = next((volume for volume in volumes if is_bound_to(volume, claim)), None)
    if kept is not None:
        return kept
    free = [volume for volume in volumes if _is_free_for(volume, claim)]
    return min(free, key=lambda each: (offered_storage(each), each["metadata"]["name"]), default=None)


def _could_hold(volume: Manifest, claim: Manifest) -> bool:
    """Requirements that also apply to a volume reserved for the claim."""
    return (
        (not volume["spec"].get("claimRef") or is_bound_to(volume, claim))
        and offered_storage(volume) >= wanted_storage(claim)
        and has_same_mode(volume, claim)
        and _attributes_class(volume) == _attributes_class(claim)
        and "deletionTimestamp" not in volume["metadata"]
    )


def _is_free_for(volume: Manifest, claim: Manifest) -> bool:
    selector = claim["spec"].get("selector")
    if phase_of(volume) != "Available":
        return False
    return selector is None or sound_selector(selector).matches(labels_of(volume))


def mismatch(volume: Manifest, claim: Manifest) -> str:
    """Why a claim cannot be bound to the volume that it names; empty if it can."""
    if "deletionTimestamp" in volume["metadata"]:
        return f'the volume is marked for deletion "{volume["metadata"]["name"]}"'
    if offered_storage(volume).value < wanted_storage(claim).value:
        return "requested PV is too small"
    if volume_class(volume) != claim_class(claim):
        return "storageClassName does not match"
    if _attributes_class(volume) != _attributes_class(claim):
        return "volumeAttributesClassName does not match"
    if not has_same_mode(volume, claim):
        return "incompatible volumeMode"
    if not set(claim["spec"].get("accessModes") or ()).issubset(volume["spec"].get("accessModes") or ()):
        return "incompatible accessMode"
    return ""


def has_same_mode(volume: Manifest, claim: Manifest) -> bool:
    """Whether both are file systems, or both are block devices."""
    offered, wanted = volume["spec"].get("volumeMode"), claim["spec"].get("volumeMode")
    return (offered or _FILESYSTEM) == (wanted or _FILESYSTEM)


def _attributes_class(obj: Manifest) -> str:
    name: str = obj["spec"].get("volumeAttributesClassName") or ""
    return name
