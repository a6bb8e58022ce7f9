"""Everything a scheduler writes to the cluster, as values: plugins return effects, the caller performs them.

The engine stays free of I/O. A live scheduler turns each effect into requests to the API server; a replay or
a simulation applies it to its own state.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from moorage.api.base import Object
from moorage.api.devices import ResourceClaim, ResourceClaimStatus
from moorage.api.pod import Pod, PodExtendedResourceClaimStatus
from moorage.api.pod_groups import Group
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim


class BindPod(msgspec.Struct, frozen=True):
    """Run a pod on a node."""

    pod: Pod
    node_name: str


class NominateNode(msgspec.Struct, frozen=True):
    """Write the node that is being freed for a pod into its status; an empty name clears it."""

    pod: Pod
    node_name: str


class EvictPods(msgspec.Struct, frozen=True):
    """Delete pods to make room for another, each after its DisruptionTarget condition is written.

    The last one is deleted after all others are gone: its deletion requeues the preemptor.
    """

    victims: tuple[Pod, ...]
    preemptor: Pod
    node_name: str
    plugin: str = ""
    """The plugin that preempts."""
    terminating: int = 0
    """Number of further victims that are terminating already."""
    group: Group | None = None
    """The group for which room is made; the preemptor is one of its pods."""
    pdb_violations: int = 0
    """Number of victims whose eviction violates a disruption budget."""
    disrupted_units: int = 0
    """Where room is made for a group: number of units of groups that are evicted."""

    @property
    def victim_count(self) -> int:
        """Number of all victims."""
        return len(self.victims) + self.terminating

    @property
    def preemptor_type(self) -> str:
        """What room is made for, in messages."""
        return "pod" if self.group is None else self.group.__class__.__name__.lower()


class BindVolume(msgspec.Struct, frozen=True):
    """Bind a volume to a claim: write the claim's reference into the volume."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim


class SelectNode(msgspec.Struct, frozen=True):
    """Ask for a volume to be provisioned for a claim where a node can reach it."""

    claim: PersistentVolumeClaim
    node_name: str


class WriteClaimStatus(msgspec.Struct, frozen=True):
    """Replace the status of a device claim: its allocation and the consumers it is reserved for."""

    claim: ResourceClaim
    status: ResourceClaimStatus


class CreateClaim(msgspec.Struct, frozen=True):
    """Create a device claim, for extended resources that devices back; the answer is the stored claim."""

    claim: ResourceClaim
    pod: Pod


class DeleteClaim(msgspec.Struct, frozen=True):
    """Delete a device claim that the scheduler created."""

    claim: ResourceClaim


class WriteExtendedResourceStatus(msgspec.Struct, frozen=True):
    """Write into a pod's status which claim backs its extended resources."""

    pod: Pod
    status: PodExtendedResourceClaimStatus


Effect = (
    BindPod
    | NominateNode
    | EvictPods
    | BindVolume
    | SelectNode
    | WriteClaimStatus
    | CreateClaim
    | DeleteClaim
    | WriteExtendedResourceStatus
)


class Effects(Protocol):
    """The only way to write."""

    async def perform(self, effect: Effect) -> Object | None:
        """Perform an effect; returns the object as stored, if any, and raises if the cluster rejects it."""


class NoEffects:
    """For engines that only decide: writing is an error there."""

    async def perform(self, effect: Effect) -> Object | None:
        """Raise an error."""
        raise RuntimeError(f"this engine decides only; it has nowhere to write {type(effect).__name__} to")
