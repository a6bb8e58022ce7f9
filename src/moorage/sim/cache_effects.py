"""Effects applied to a cache at once, in place of a cluster."""

from __future__ import annotations

from itertools import count

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.devices import ResourceClaim
from moorage.api.labels import REGION, ZONE
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.framework.interface.effects import (
    BindPod,
    BindVolume,
    CreateClaim,
    DeleteClaim,
    Effect,
    EvictPods,
    NominateNode,
    SelectNode,
    WriteClaimStatus,
    WriteExtendedResourceStatus,
)
from moorage.sim.volume_controller import VolumeController


class CacheEffects:
    """Writes to a cache instead of an API server."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._volumes = VolumeController(cache)
        self._names = count()

    async def perform(self, effect: Effect) -> Object | None:
        """Apply an effect, and return the object as stored."""
        match effect:
            case BindPod(pod, node_name):
                self._cache.put_pod(self._bound(pod, node_name))
            case NominateNode(pod, node_name):
                self._cache.nominations.put(pod, node_name)
            case EvictPods(victims):
                for victim in victims:
                    self._cache.remove_pod(victim)
            case BindVolume() | SelectNode():
                return self._volumes.apply(effect)
            case WriteClaimStatus(claim, status):
                return self._store(replace(claim, status=status))
            case CreateClaim(claim):
                return self._store(self._named(claim))
            case DeleteClaim(claim):
                self._cache.objects.remove(claim)
            case WriteExtendedResourceStatus(pod, status):
                return replace(pod, status=replace(pod.status, extended_resource_claim_status=status))
        return None

    def _bound(self, pod: Pod, node_name: str) -> Pod:
        """A pod as the API server stores it on binding: with its node's zone and region."""
        node = self._cache.node(node_name)
        places = {key: node.labels[key] for key in (ZONE, REGION) if node is not None and key in node.labels}
        meta = replace(pod.metadata, labels={**pod.labels, **places})
        return replace(pod, metadata=meta, spec=replace(pod.spec, node_name=node_name))

    def _named(self, claim: ResourceClaim) -> ResourceClaim:
        """A claim with a name and uid, which the API server would generate."""
        meta = claim.metadata
        name = meta.name or f"{meta.generate_name}{next(self._names):05}"
        return replace(claim, metadata=replace(meta, name=name, uid=meta.uid or f"uid-of-{name}"))

    def _store(self, claim: ResourceClaim) -> ResourceClaim:
        self._cache.objects.put(claim)
        return claim
