"""A pod's volumes and claims on its node: first assumed in memory, then written and waited for.

An assumption is made in the live tables, so that the next pod's cycle sees the volume taken. It ends with the
next watch event of the object, or is reverted when the pod fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from msgspec.structs import replace

from moorage.api.base import Object, ObjectReference
from moorage.api.node import Node
from moorage.api.persistent_volumes import BOUND_BY_CONTROLLER, SELECTED_NODE, is_bound, is_bound_to
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.cluster.object_tables import Objects, ObjectTable
from moorage.framework.interface.effects import BindVolume, Effects, SelectNode
from moorage.plugins.volume_binding.planning import PlannedBindings, reachable_from
from moorage.plugins.volumes.persistent_volume_claims import VolumeError, not_found

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)

Written = tuple[type[Object], str]
"""An object that was written: its kind and name."""

_NEVER = 1 << 64
"""Greater than every resource version."""


def given_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """A volume with the claim's reference in it; annotated, unless the user had reserved it for it."""
    annotations = volume.metadata.annotations
    if not is_bound_to(volume, claim):
        annotations = {**annotations, BOUND_BY_CONTROLLER: annotations.get(BOUND_BY_CONTROLLER, "yes")}
    meta = claim.metadata
    reference = ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
    )
    kept = volume.spec.claim_ref
    if kept is not None and (kept.namespace, kept.name, kept.uid) == (meta.namespace, meta.name, meta.uid):
        reference = kept
    return replace(
        volume,
        metadata=replace(volume.metadata, annotations=annotations),
        spec=replace(volume.spec, claim_ref=reference),
    )


def to_be_provisioned(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """A claim that asks its provisioner for a volume that a node can reach."""
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node_name}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))


@dataclass(slots=True)
class Reservation:
    """The volumes and claims of one pod on one node.

    assumed: what this pod changed in the tables; equal assumptions of other pods are reverted by those.
    written: the resource versions of the objects we wrote, as far as the API server returned them.
    shown: the objects that have been seen as we wrote them.
    """

    node: Node
    bindings: list[tuple[PersistentVolume, PersistentVolumeClaim]] = field(default_factory=list)
    provisions: list[PersistentVolumeClaim] = field(default_factory=list)
    assumed: list[PersistentVolume | PersistentVolumeClaim] = field(default_factory=list)
    written: dict[Written, int] = field(default_factory=dict)
    shown: set[Written] = field(default_factory=set)

    def assume(self, choice: PlannedBindings, objects: Objects) -> None:
        """Show the volumes and claims as they are going to be; VolumeError if they have changed meanwhile."""
        for claim, volume in choice.bindings:
            taken = given_to(volume, claim)
            self._assume(objects.of(PersistentVolume), volume, taken, "persistentvolumes")
            self.bindings.append((taken, claim))
        for claim in choice.provisions:
            asking = to_be_provisioned(claim, self.node.name)
            self._assume(objects.of(PersistentVolumeClaim), claim, asking, "persistentvolumeclaims")
            self.provisions.append(asking)

    def _assume(self, table: ObjectTable[T], seen: T, wanted: T, resource: str) -> None:
        current = table.get(seen.namespace, seen.name)
        if current is None:
            raise VolumeError(not_found(resource, seen.key))
        if current != seen:
            versions = (current.metadata.resource_version, seen.metadata.resource_version)
            raise VolumeError(f'"{seen.key}" is out of sync (stored: {versions[0]}, assume: {versions[1]})')
        if wanted != current:
            table.assume(wanted)
            self.assumed.append(wanted)

    def revert(self, objects: Objects) -> None:
        """Undo `assume`, except for objects that have been replaced since; idempotent."""
        while self.assumed:
            item = self.assumed.pop()
            table: ObjectTable[PersistentVolume | PersistentVolumeClaim] = objects.of(type(item))
            if table.get(item.namespace, item.name) is item:
                table.forget(item.namespace, item.name)

    async def write(self, effects: Effects) -> None:
        """Write to the API server, volumes first."""
        for volume, claim in self.bindings:
            self._note(volume, await effects.perform(BindVolume(volume, claim)))
        for claim in self.provisions:
            self._note(claim, await effects.perform(SelectNode(claim, self.node.name)))

    def _note(self, sent: Object, answer: Object | None) -> None:
        if answer is not None and answer.metadata.resource_version:
            self.written[type(sent), sent.key] = _version(answer)

    def complete(self, objects: Objects) -> bool:
        """Whether every claim has its volume, by what the API server shows; VolumeError if one never will."""
        return all(self._bound(volume, claim, objects) for volume, claim in self.bindings) and all(
            self._provisioned(claim, objects) for claim in self.provisions
        )

    def _bound(self, taken: PersistentVolume, claim: PersistentVolumeClaim, objects: Objects) -> bool:
        volume = _stored(objects, taken, "failed to check binding", "persistentvolumes")
        shown = _stored(objects, claim, "failed to check binding", "persistentvolumeclaims")
        reference = volume.spec.claim_ref
        ours = is_bound_to(volume, claim) and reference is not None and reference.uid == claim.metadata.uid
        if not self._is_shown(volume, ours):
            return False
        self._check_reach(volume, objects)
        if reference is None or (shown.metadata.uid and not reference.uid):
            raise VolumeError(f'ClaimRef got reset for pv "{volume.name}"')
        return is_bound(shown)

    def _provisioned(self, asking: PersistentVolumeClaim, objects: Objects) -> bool:
        claim = _stored(objects, asking, "failed to check provisioning pvc", "persistentvolumeclaims")
        selected = claim.metadata.annotations.get(SELECTED_NODE) == self.node.name
        if not self._is_shown(claim, selected):
            return False
        if not claim.metadata.annotations:
            raise VolumeError(f'selectedNode annotation reset for PVC "{claim.name}"')
        if not selected:
            raise VolumeError(f'provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            volume = objects.of(PersistentVolume).stored("", claim.spec.volume_name)
            if volume is None:
                return False
            self._check_reach(volume, objects)
        return is_bound(claim)

    def _is_shown(self, item: Object, looks_written: bool) -> bool:
        """Whether the informer has observed our write; earlier states of the object are ignored.

        An object equal to what we wrote counts, and so does one of a version not older than the response's.
        """
        key = (type(item), item.key)
        if looks_written or _version(item) >= self.written.get(key, _NEVER):
            self.shown.add(key)
        return key in self.shown

    def _check_reach(self, volume: PersistentVolume, objects: Objects) -> None:
        if not reachable_from(volume, self.node, objects):
            raise VolumeError(
                f'pv "{volume.name}" node affinity doesn\'t match node "{self.node.name}": '
                "no matching NodeSelectorTerms"
            )


def _stored(objects: Objects, item: T, doing: str, resource: str) -> T:
    table: ObjectTable[T] = objects.of(type(item))
    stored = table.stored(item.namespace, item.name)
    if stored is None:
        raise VolumeError(f"{doing}: {not_found(resource, item.key)}")
    return stored


def _version(item: Object) -> int:
    """An object's resource version, which only increases."""
    text = item.metadata.resource_version
    return int(text) if text.isdecimal() else 0
