"""Bind a volume claim where the pod can run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from msgspec.structs import replace as replaced

from moorage.api.base import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    ObjectReference,
)
from moorage.api.labels import BETA_REGION, BETA_ZONE, HOSTNAME, REGION, ZONE
from moorage.api.node import Node
from moorage.api.persistent_volumes import BIND_COMPLETED, claim_class, is_bound
from moorage.api.selectors import RequiredNodes, node_terms
from moorage.api.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    VolumeNodeAffinity,
)
from moorage.cluster.pod_table import claims_of
from moorage.explain.help.change import Change, Situation
from moorage.explain.help.problem import Offer, Problem

_PLUGINS: Final = ("VolumeBinding", "VolumeZone")
_PLACES: Final = (ZONE, REGION, BETA_ZONE, BETA_REGION)
"""Labels of volumes that say where they are."""
_MAX_PLACES: Final = 4
_MAX_GROUPS: Final = 4


@dataclass(frozen=True, slots=True)
class BindClaim:
    """Bind a claim to a volume that nodes with a label value reach; a bound one's volume moves there."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume | None
    """The volume that it is bound to; None: it needs one."""
    key: str
    value: str

    kind: str = "volumeClaim"

    def __str__(self) -> str:
        name = self.claim.key
        place = f"zone {self.value}" if self.key == ZONE else f"{self.key}={self.value}"
        if self.volume is not None:
            return f"move the volume of claim {name} to {place}"
        return f"bind claim {name} to a volume in {place}"

    def apply(self, situation: Situation) -> Situation:
        """With the claim bound there."""
        claim = situation.current(self.claim)
        volume = self._volume(claim)
        notes = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
        bound = replaced(
            claim,
            metadata=replaced(claim.metadata, annotations=notes),
            spec=replaced(claim.spec, volume_name=volume.name),
            status=PersistentVolumeClaimStatus(phase="Bound"),
        )
        return situation.putting(volume, bound)

    def _volume(self, claim: PersistentVolumeClaim) -> PersistentVolume:
        volume = self.volume or _new_volume(claim)
        labels = {key: value for key, value in volume.labels.items() if key not in _PLACES}
        here = NodeSelectorRequirement(key=self.key, operator="In", values=(self.value,))
        terms = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(here,)),))
        return replaced(
            volume,
            metadata=replaced(volume.metadata, labels=labels),
            spec=replaced(volume.spec, node_affinity=VolumeNodeAffinity(required=terms)),
        )

    def details(self) -> dict[str, Any]:
        """The claim, and where its volume would be."""
        return {"claim": self.claim.key, "key": self.key, "value": self.value}


def _new_volume(claim: PersistentVolumeClaim) -> PersistentVolume:
    owner = ObjectReference(
        kind="PersistentVolumeClaim",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.metadata.uid,
    )
    return PersistentVolume(
        metadata=ObjectMeta(name=f"volume-for-{claim.namespace}-{claim.name}"),
        spec=PersistentVolumeSpec(
            capacity=claim.spec.resources.requests,
            access_modes=claim.spec.access_modes,
            claim_ref=owner,
            storage_class_name=claim_class(claim),
            volume_mode=claim.spec.volume_mode,
        ),
        status=PersistentVolumeStatus(phase="Bound"),
    )


def offers(problem: Problem) -> Iterator[Offer]:
    """The claims that stand in the way, bound in places of nodes that other filters treat alike."""
    claims = _claims(problem)
    if not claims or not problem.refused_by(*_PLUGINS).any():
        return
    seen = set()
    for plugin in _PLUGINS:
        for _, rows in zip(range(_MAX_GROUPS), problem.groups(plugin), strict=False):
            places: dict[tuple[str, str], int] = {}
            for row in rows.tolist():
                places.setdefault(_place(problem.snapshot.nodes[row]), row)
                if len(places) >= _MAX_PLACES:
                    break
            for place, row in places.items():
                if place not in seen:
                    seen.add(place)
                    yield from _in_place(problem, claims, place, problem.snapshot.nodes[row])


def _claims(problem: Problem) -> list[tuple[PersistentVolumeClaim, PersistentVolume | None]]:
    """The pod's claims that exist, with their volumes."""
    objects, found = problem.snapshot.objects, []
    for key in sorted(claims_of(problem.pod)):
        claim = objects.of(PersistentVolumeClaim).get(*key.split("/", 1))
        if claim is not None:
            volume = objects.of(PersistentVolume).get("", claim.spec.volume_name)
            found.append((claim, volume if is_bound(claim) else None))
    return found


def _place(node: Node) -> tuple[str, str]:
    """The label by which a node's place is known: its zone, or the node itself."""
    key = ZONE if ZONE in node.labels else HOSTNAME
    return key, node.labels.get(key, node.name)


def _in_place(
    problem: Problem,
    claims: list[tuple[PersistentVolumeClaim, PersistentVolume | None]],
    place: tuple[str, str],
    node: Node,
) -> Iterator[Offer]:
    """The claims whose volumes a node cannot reach; then all that have no volume as well."""
    key, value = place
    cleared = np.where(np.asarray(problem.nodes.label(key).equals(value)), problem.bit(*_PLUGINS), 0)
    unreachable = [
        (claim, volume) for claim, volume in claims if volume is not None and not _reaches(node, volume)
    ]
    without = [(claim, volume) for claim, volume in claims if volume is None]
    for some in (unreachable, [*unreachable, *without]):
        if some:
            changes: tuple[Change, ...] = tuple(BindClaim(*each, key, value) for each in some)
            yield Offer(changes, cleared, len(changes))


def _reaches(node: Node, volume: PersistentVolume) -> bool:
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    if required is not None and not RequiredNodes((), node_terms(required)).matches(node):
        return False
    places = {key: value for key, value in volume.labels.items() if key in _PLACES}
    return all(node.labels.get(key) in value.split("__") for key, value in places.items())
