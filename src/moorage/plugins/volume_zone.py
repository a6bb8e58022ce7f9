"""VolumeZone: a pod fits where its volumes are, by the zone and region labels of volumes and nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moorage.api.labels import BETA_REGION, BETA_ZONE, REGION, ZONE
from moorage.api.persistent_volumes import WAIT_FOR_FIRST_CONSUMER, claim_class
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import NODE_FOR_ANY_POD, DependsOn
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.filter_result import ALL, FilterResult, refuse_where
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Status, unresolvable
from moorage.plugins.hint_helpers import USES_CLAIM, uses_claim
from moorage.plugins.volumes.csi_migration import SEPARATOR
from moorage.plugins.volumes.node_masks import NodeMasks
from moorage.plugins.volumes.persistent_volume_claims import (
    CLAIM_WITHOUT_NAME,
    VOLUME_KINDS,
    find_claims,
    is_without_storage,
    not_found,
    reject_all_nodes,
    waits_for_consumer,
)

WRONG_ZONE = "node(s) had no available volume zone"
UNBOUND_WITHOUT_CLASS = "PersistentVolumeClaim had no pv name and storageClass name"
UNBOUND = "PersistentVolume had no name"

_TODAYS_NAME = {BETA_ZONE: ZONE, BETA_REGION: REGION, ZONE: ZONE, REGION: REGION}

Places = frozenset[tuple[str, frozenset[str]]]
"""Labels that nodes must have, each with the accepted values."""

_PLACES: StateKey[Places] = StateKey("VolumeZone/filter")


class VolumeZone:
    """Compares the labels of bound volumes with those of all nodes at once."""

    name = "VolumeZone"
    watched_kinds: tuple[Kind, ...] = VOLUME_KINDS

    def __init__(self) -> None:
        self._elsewhere: NodeMasks[Places] = NodeMasks(_elsewhere)

    def events(self) -> tuple[Interest, ...]:
        """Nodes added or relabelled; claims and volumes added or their places set; a missing class added."""
        either = Action.ADD | Action.UPDATE
        return (
            on(Resource.STORAGE_CLASS, Action.ADD, _class_waits, per_equivalence_class=True),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            on(
                Resource.PERSISTENT_VOLUME_CLAIM,
                either,
                _is_its_claim,
                per_equivalence_class=True,
                index=USES_CLAIM,
            ),
            on(Resource.PERSISTENT_VOLUME, either, _volume_moves, per_equivalence_class=True),
        )

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """Does nothing for pods without storage."""
        return NODE_FOR_ANY_POD if is_without_storage(pod) else None

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Find the places of the pod's volumes; claims that wait for the pod's node have none yet."""
        places = _places(cycle, pod, nodes.objects)
        if isinstance(places, Status):
            return places
        if not places:
            return SKIP
        cycle.write(_PLACES, places)
        return None

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Reject nodes in other places; a node without any zone or region label can be anywhere."""
        known = cycle.read(_PLACES)
        places = _places(cycle, pod, nodes.objects) if known is None else known
        if isinstance(places, Status):
            return reject_all_nodes(self.name, nodes, places)
        if not places:
            return ALL
        return refuse_where(self._elsewhere.mask(places, nodes), WRONG_ZONE, resolvable=False)


def _elsewhere(places: Places, nodes: Nodes) -> NDArray[np.bool_]:
    """The nodes that have any zone or region label, and are not in all of some places."""
    somewhere = np.zeros(len(nodes), bool)
    for key in _TODAYS_NAME:
        somewhere |= nodes.label(key).exists()
    elsewhere = np.zeros(len(nodes), bool)
    for key, values in places:
        elsewhere |= ~_in_place(nodes, key, values)
    elsewhere &= somewhere
    return elsewhere


def _in_place(nodes: Nodes, key: str, values: frozenset[str]) -> NDArray[np.bool_]:
    """Where the label has one of the values; a volume's beta label also matches a node's current one."""
    label = nodes.label(key)
    matches: NDArray[np.bool_] = label.is_in(values)
    if _TODAYS_NAME[key] != key:
        matches = matches | (~label.exists() & nodes.label(_TODAYS_NAME[key]).is_in(values))
    return matches


def _places(cycle: CycleState, pod: Pod, objects: Objects) -> Places | Status:
    places: set[tuple[str, frozenset[str]]] = set()
    for name, ephemeral, claim, volume in find_claims(cycle, pod, objects):
        if ephemeral:
            continue
        if not name:
            return unresolvable(CLAIM_WITHOUT_NAME)
        if claim is None:
            return unresolvable(not_found("persistentvolumeclaim", name))
        if volume is not None:
            places |= _labelled_places(volume)
        elif claim.spec.volume_name:
            return unresolvable(not_found("persistentvolume", claim.spec.volume_name))
        elif refusal := _unbound(claim, objects):
            return refusal
    return frozenset(places)


def _unbound(claim: PersistentVolumeClaim, objects: Objects) -> Status | None:
    name = claim_class(claim)
    if not name:
        return unresolvable(UNBOUND_WITHOUT_CLASS)
    if objects.of(StorageClass).get("", name) is None:
        return unresolvable(not_found("storageclass.storage.k8s.io", name))
    return None if waits_for_consumer(claim, objects) else unresolvable(UNBOUND)


def _labelled_places(volume: PersistentVolume) -> Places:
    """The places in a volume's labels; a label with an empty value in its list is ignored."""
    labels, places = volume.labels, set()
    for key in _TODAYS_NAME if labels else ():
        if key in labels:
            values = frozenset(value.strip() for value in labels[key].split(SEPARATOR))
            if "" not in values:
                places.add((key, values))
    return frozenset(places)


def _class_waits(pod: Pod, old: None, new: StorageClass) -> bool:
    return new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _is_its_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    return uses_claim(pod, new, ephemeral=False)


def _volume_moves(pod: Pod, old: PersistentVolume | None, new: PersistentVolume) -> bool:
    return old is None or _labelled_places(old) != _labelled_places(new)
