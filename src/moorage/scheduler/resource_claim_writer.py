"""Writes ResourceClaim statuses without overwriting other clients' changes.

Several pods may share a claim, and drivers write to it as well. So only changed fields are written; after a
conflict the same change is applied to the stored claim, unless its allocation was changed.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from moorage.api.decode import convert
from moorage.api.devices import AllocationResult, ResourceClaim, ResourceClaimStatus
from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.kinds import RESOURCE_CLAIM
from moorage.http.errors import RequestError
from moorage.scheduler.encoding import plain

_MAX_CONFLICTS: Final = 5
_PROTECTION: Final = "resource.kubernetes.io/delete-protection"


class ResourceClaimWriter:
    """Writes ResourceClaims."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a claim; returns the stored one."""
        body = plain(claim) | {"apiVersion": RESOURCE_CLAIM.api_version, "kind": RESOURCE_CLAIM.name}
        return convert(await self._client.create(RESOURCE_CLAIM, claim.namespace, body), ResourceClaim)

    async def write_status(self, claim: ResourceClaim, status: ResourceClaimStatus) -> ResourceClaim:
        """Apply the change of a claim's status; the delete-protection finalizer is stored first."""
        latest, conflicts = claim, 0
        while True:
            try:
                if _PROTECTION in claim.metadata.finalizers:
                    latest = await self._protected(latest, is_known=latest is not claim)
                return await self._patch_status(latest, _change(claim.status, status, latest.status))
            except RequestError as error:
                conflicts += 1
                if not error.is_conflict or conflicts > _MAX_CONFLICTS:
                    raise
                latest = await self._reread(claim, status, error)

    async def _protected(self, claim: ResourceClaim, is_known: bool) -> ResourceClaim:
        """A claim with its finalizer stored; `is_known`: its finalizers are the stored ones."""
        finalizers = list(claim.metadata.finalizers)
        if _PROTECTION in finalizers and is_known:
            return claim
        if _PROTECTION not in finalizers:
            finalizers.append(_PROTECTION)
        patch = {"metadata": {**_identity(claim), "finalizers": finalizers}}
        stored = await self._client.patch(RESOURCE_CLAIM, claim.namespace, claim.name, patch, "merge")
        return convert(stored, ResourceClaim)

    async def _patch_status(self, claim: ResourceClaim, change: Manifest) -> ResourceClaim:
        patch = {"metadata": _identity(claim), "status": change}
        stored = await self._client.patch(
            RESOURCE_CLAIM, claim.namespace, claim.name, patch, "merge", "status"
        )
        return convert(stored, ResourceClaim)

    async def _reread(
        self, claim: ResourceClaim, status: ResourceClaimStatus, conflict: RequestError
    ) -> ResourceClaim:
        """The stored claim; raises the conflict if the change can no longer be applied to it."""
        stored = await self._client.get(RESOURCE_CLAIM, claim.namespace, claim.name)
        latest = convert(stored, ResourceClaim)
        is_terminating = latest.metadata.deletion_timestamp is not None and status.allocation is not None
        given = _timeless(latest.status.allocation)
        is_undecided = given in (_timeless(claim.status.allocation), _timeless(status.allocation))
        if latest.metadata.uid != claim.metadata.uid or is_terminating or not is_undecided:
            raise conflict
        return latest

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim and its finalizer; one that is deleted or recreated is no failure."""
        latest, conflicts = claim, 0
        try:
            while latest.metadata.uid == claim.metadata.uid:
                try:
                    await self._delete(latest)
                    return
                except RequestError as error:
                    conflicts += 1
                    if not error.is_conflict or conflicts > _MAX_CONFLICTS:
                        raise
                stored = await self._client.get(RESOURCE_CLAIM, claim.namespace, claim.name)
                latest = convert(stored, ResourceClaim)
        except RequestError as error:
            if not error.is_not_found:
                raise

    async def _delete(self, claim: ResourceClaim) -> None:
        finalizers = [name for name in claim.metadata.finalizers if name != _PROTECTION]
        patch = {"metadata": {**_identity(claim), "finalizers": finalizers}}
        await self._client.patch(RESOURCE_CLAIM, claim.namespace, claim.name, patch, "merge")
        await self._client.delete(RESOURCE_CLAIM, claim.namespace, claim.name, uid=claim.metadata.uid)


def _identity(claim: ResourceClaim) -> Manifest:
    return {"resourceVersion": claim.metadata.resource_version, "uid": claim.metadata.uid}


def _timeless(allocation: AllocationResult | None) -> AllocationResult | None:
    """An allocation without its timestamp, which the API server stores with less precision."""
    return None if allocation is None else replace(allocation, allocation_timestamp=None)


def _change(before: ResourceClaimStatus, after: ResourceClaimStatus, stored: ResourceClaimStatus) -> Manifest:
    """The patch that applies the change from `before` to `after` to what is stored."""
    change: Manifest = {}
    if _timeless(after.allocation) != _timeless(stored.allocation):
        change["allocation"] = plain(after.allocation)
    if after.devices != before.devices:
        change["devices"] = plain(after.devices) or None
    dropped = {each.uid for each in before.reserved_for} - {each.uid for each in after.reserved_for}
    consumers = {each.uid: each for each in stored.reserved_for if each.uid not in dropped}
    known = {each.uid for each in before.reserved_for}
    consumers |= {each.uid: each for each in after.reserved_for if each.uid not in known}
    change["reservedFor"] = plain(tuple(consumers.values())) or None
    return change
