"""What the volume plugins share: how pods name claims, what annotations mean, and how filters reject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from moorage.api.persistent_volumes import WAIT_FOR_FIRST_CONSUMER, claim_class
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.client import kinds
from moorage.cluster.object_tables import Objects
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.filter_result import FilterResult, Reason
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import PluginError, Status

VOLUME_KINDS: Final = (kinds.PERSISTENT_VOLUME, kinds.PERSISTENT_VOLUME_CLAIM, kinds.STORAGE_CLASS)
"""The kinds that determine which volume a claim has or may get."""

CLAIM_WITHOUT_NAME = "PersistentVolumeClaim had no name"


class VolumeError(Exception):
    """An error of a volume or claim that fails the attempt, rather than rejecting a node."""


class ClaimUse(NamedTuple):
    """A claim that a pod uses: one it names, or one that is made for an ephemeral volume of its own."""

    name: str
    ephemeral: bool


class FoundClaim(NamedTuple):
    """A claim that a pod uses, and the volume that the claim names; None for what does not exist."""

    name: str
    ephemeral: bool
    claim: PersistentVolumeClaim | None
    volume: PersistentVolume | None


_FOUND_CLAIMS: StateKey[Sequence[FoundClaim]] = StateKey("volumes/found claims")


def find_claims(cycle: CycleState, pod: Pod, objects: Objects) -> Sequence[FoundClaim]:
    """The claims a pod uses, in the order of its volumes; they are looked up once in a cycle."""
    found = cycle.read(_FOUND_CLAIMS)
    if found is None:
        claims, volumes = objects.of(PersistentVolumeClaim), objects.of(PersistentVolume)
        found = []
        for name, ephemeral in claim_uses(pod):
            claim = claims.get(pod.namespace, name)
            volume = volumes.get("", claim.spec.volume_name) if claim and claim.spec.volume_name else None
            found.append(FoundClaim(name, ephemeral, claim, volume))
        cycle.write(_FOUND_CLAIMS, found)
    return found


def is_without_storage(pod: Pod) -> bool:
    """Whether none of a pod's volumes is relevant to scheduling."""
    return not any(volume.concerns_scheduling for volume in pod.spec.volumes)


def claim_uses(pod: Pod) -> Iterator[ClaimUse]:
    """The claims a pod uses, in the order of its volumes."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield ClaimUse(volume.persistent_volume_claim.claim_name, ephemeral=False)
        elif volume.ephemeral is not None:
            yield ClaimUse(f"{pod.name}-{volume.name}", ephemeral=True)


def waits_for_consumer(claim: PersistentVolumeClaim, objects: Objects) -> bool:
    """Whether a claim gets its volume only when a pod that uses it has a node."""
    storage_class = objects.of(StorageClass).get("", claim_class(claim))
    return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def not_found(resource: str, name: str) -> str:
    """An API client's error message for an object that does not exist."""
    return f'{resource} "{name}" not found'


def foreign_claim(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """The error of a claim that has the name of a pod's ephemeral volume but was not created for it."""
    owner = claim.controller
    if claim.namespace == pod.namespace and owner is not None and owner.uid == pod.metadata.uid:
        return None
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def reject_all_nodes(plugin: str, nodes: Nodes, status: Status) -> FilterResult:
    """A filter's result where the pre-filter would have rejected the pod; an error fails the attempt."""
    if not status.refused:
        raise PluginError(plugin, "filter", status.message)
    return FilterResult(np.ones(len(nodes), np.int8), (Reason(status.reasons, status.code),))
