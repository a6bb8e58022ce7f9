"""Whether the volumes and devices of a pod are ready: pods wait for claims that are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from moorage.api.manifests import Manifest
from moorage.client.informer import EventType
from moorage.client.kinds import PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM, Kind
from moorage_cluster.controllers.cluster import Cluster


class _Claim(NamedTuple):
    kind: Kind
    namespace: str
    name: str


class ClaimReadiness:
    """The claims of a cluster, and the pods that wait for them."""

    def __init__(self, cluster: Cluster) -> None:
        self._volumes = cluster.informer(PERSISTENT_VOLUME_CLAIM)
        self._devices = cluster.informer(RESOURCE_CLAIM)
        self._waiting: dict[_Claim, dict[str, Callable[[], None]]] = {}
        for informer in (self._volumes, self._devices):
            informer.listeners.append(self._follow(informer.kind))

    def ready(self, pod: Manifest, again: Callable[[], None]) -> bool:
        """Whether a pod's claims are ready; if not, `again` is called once one of them has changed."""
        missing = [claim for claim in _claims(pod) if not self._is_ready(claim, pod)]
        for claim in missing:
            self._waiting.setdefault(claim, {})[pod["metadata"]["uid"]] = again
        return not missing

    def _is_ready(self, claim: _Claim, pod: Manifest) -> bool:
        informer = self._volumes if claim.kind is PERSISTENT_VOLUME_CLAIM else self._devices
        known = informer.get(claim.namespace, claim.name) if claim.name else None
        status = (known or {}).get("status") or {}
        if claim.kind is PERSISTENT_VOLUME_CLAIM:
            return bool(status.get("phase") == "Bound")
        users = status.get("reservedFor") or ()
        return "allocation" in status and any(user["uid"] == pod["metadata"]["uid"] for user in users)

    def _follow(self, kind: Kind) -> Callable[[EventType, Manifest, Manifest | None], None]:
        def follow(type: EventType, obj: Manifest, before: Manifest | None) -> None:
            meta = obj["metadata"]
            for again in self._waiting.pop(_Claim(kind, meta["namespace"], meta["name"]), {}).values():
                again()

        return follow


def _claims(pod: Manifest) -> Iterator[_Claim]:
    meta, spec = pod["metadata"], pod["spec"]
    for volume in spec.get("volumes") or ():
        if source := volume.get("persistentVolumeClaim"):
            yield _Claim(PERSISTENT_VOLUME_CLAIM, meta["namespace"], source["claimName"])
        elif "ephemeral" in volume:
            yield _Claim(PERSISTENT_VOLUME_CLAIM, meta["namespace"], f"{meta['name']}-{volume['name']}")
    made = {
        each["name"]: each.get("resourceClaimName")
        for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    for claim in spec.get("resourceClaims") or ():
        name = claim.get("resourceClaimName")
        if name is None and claim["name"] in made:
            name = made[claim["name"]]
            if name is None:
                continue  # Its template requested nothing, so no claim was created.
        yield _Claim(RESOURCE_CLAIM, meta["namespace"], name or "")
