"""Claims and volumes of a run, as the final checks see them: volumes that one node reaches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from moorage.api.manifests import Manifest
from moorage_cluster.chaos.world import World, named


@dataclass(frozen=True, slots=True)
class Storage:
    """All claims, by name, and all volumes."""

    claims: dict[str, Manifest]
    volumes: list[Manifest]

    @classmethod
    def of(cls, world: World) -> Self:
        """Those of a world."""
        claims = dict(named(world.objects("PersistentVolumeClaim")))
        return cls(claims, world.objects("PersistentVolume"))

    def volumes_of(self, claim: str) -> list[Manifest]:
        """The volumes that are claimed by a claim."""
        uid = self.claims[claim]["metadata"]["uid"] if claim in self.claims else ""
        return [each for each in self.volumes if (each["spec"].get("claimRef") or {}).get("uid") == uid]

    def has_volumes(self, pod: Manifest, node: str) -> bool:
        """Whether each claim of a pod has a volume on a node, or can get one."""
        free = sum(
            1 for each in self.volumes if not each["spec"].get("claimRef") and node_of_volume(each) == node
        )
        for claim in claim_names(pod):
            bound = self.volumes_of(claim)
            if claim not in self.claims or any(node_of_volume(each) != node for each in bound):
                return False
            free -= not bound
        return free >= 0


def claim_names(pod: Manifest) -> list[str]:
    """The claims of a pod."""
    volumes = pod["spec"].get("volumes") or ()
    return [each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each]


def node_of_volume(volume: Manifest) -> str:
    """The one node that reaches a volume."""
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    return str(term["matchExpressions"][0]["values"][0])
