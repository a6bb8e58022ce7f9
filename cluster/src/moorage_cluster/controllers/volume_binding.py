"""Writing bindings of volumes and claims: each step is stored before the next, and is idempotent.

The volume is bound to the claim first, then the claim to the volume. An incomplete binding can be finished
from either side.
"""

from __future__ import annotations

from moorage.api.manifests import Manifest, annotations_of, child, copy, metadata
from moorage.api.persistent_volumes import BIND_COMPLETED, BOUND_BY_CONTROLLER, is_bound_to
from moorage.api.quantity import parse_quantity
from moorage.client.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.volume_facts import (
    as_claim,
    as_volume,
    phase_of,
    reference_to,
)

_PRE_RESIZE_CAPACITY = "volume.alpha.kubernetes.io/pre-resize-capacity"


class VolumeBindings:
    """Binds and unbinds; every method returns the stored object."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def bind(self, volume: Manifest, claim: Manifest) -> None:
        """Bind both to each other, or finish an incomplete binding."""
        volume = await self._give(volume, claim)
        volume = await self.set_volume_phase(volume, "Bound")
        claim = await self._take(claim, volume)
        await self.set_claim_phase(claim, "Bound", volume)

    async def unbind(self, volume: Manifest) -> Manifest:
        """Unbind a volume from its claim; a reference by the user is kept, but without the claim's uid."""
        new = copy(volume)
        if BOUND_BY_CONTROLLER in annotations_of(volume):
            del new["spec"]["claimRef"]
            del new["metadata"]["annotations"][BOUND_BY_CONTROLLER]
        else:
            new["spec"]["claimRef"].pop("uid", None)
        stored = await self._cluster.update(PERSISTENT_VOLUME, new)
        return await self.set_volume_phase(stored, "Available")

    async def _give(self, volume: Manifest, claim: Manifest) -> Manifest:
        reference = volume["spec"].get("claimRef") or {}
        is_given = is_bound_to(as_volume(volume), as_claim(claim))
        if is_given and reference.get("uid"):
            return volume
        new = copy(volume)
        new["spec"]["claimRef"] = reference_to(claim)
        if not is_given:
            child(metadata(new), "annotations").setdefault(BOUND_BY_CONTROLLER, "yes")
        return await self._cluster.update(PERSISTENT_VOLUME, new)

    async def _take(self, claim: Manifest, volume: Manifest) -> Manifest:
        name = volume["metadata"]["name"]
        annotations = dict(annotations_of(claim))
        if claim["spec"].get("volumeName") != name:
            annotations.setdefault(BOUND_BY_CONTROLLER, "yes")
        elif BIND_COMPLETED in annotations:
            return claim
        annotations.setdefault(BIND_COMPLETED, "yes")
        new = copy(claim)
        new["metadata"]["annotations"] = annotations
        new["spec"]["volumeName"] = name
        return await self._cluster.update(PERSISTENT_VOLUME_CLAIM, new)

    async def set_volume_phase(self, volume: Manifest, phase: str, message: str = "") -> Manifest:
        """Set the phase of a volume."""
        if phase_of(volume) == phase:
            return volume
        new = copy(volume)
        status = child(new, "status")
        status["phase"] = phase
        status["message"] = message
        return await self._cluster.update(PERSISTENT_VOLUME, new, "status")

    async def set_claim_phase(self, claim: Manifest, phase: str, volume: Manifest | None = None) -> Manifest:
        """Set the phase of a claim, and the properties of its volume."""
        new = copy(claim)
        status = child(new, "status")
        status["phase"] = phase
        if volume is None:
            for key in ("accessModes", "capacity", "currentVolumeAttributesClassName"):
                status.pop(key, None)
        else:
            status["accessModes"] = list(volume["spec"].get("accessModes") or ())
            if phase_of(claim) != phase:
                status["capacity"] = _capacity(volume)
                if volume["spec"].get("volumeAttributesClassName") is not None:
                    status["currentVolumeAttributesClassName"] = volume["spec"]["volumeAttributesClassName"]
        if status == claim.get("status"):
            return claim
        return await self._cluster.update(PERSISTENT_VOLUME_CLAIM, new, "status")


def _capacity(volume: Manifest) -> Manifest:
    """The capacity of a claim: while a file system resize is pending, the previous one."""
    capacity = dict(volume["spec"]["capacity"])
    before = annotations_of(volume).get(_PRE_RESIZE_CAPACITY)
    if before is not None:
        try:
            parse_quantity(before)
        except ValueError:
            return capacity
        capacity["storage"] = before
    return capacity
