"""Which existing volumes a pod's claims would take on each node.

A claim takes the smallest matching volume (`api/persistent_volumes.py`) that the node can reach. Volumes
are evaluated once for all nodes: each distinct node affinity becomes the list of nodes it allows, and the
volumes are then assigned, smallest first, to the nodes in their list that have none yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from moorage.api.base import NodeSelector
from moorage.api.persistent_volumes import claim_class, matching_volumes, storage_size
from moorage.api.selectors import (
    NodeTerm,
    Operator,
    SelectorError,
    node_terms,
)
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.cluster.columns import ABSENT
from moorage.framework.interface.nodes import Label, Nodes
from moorage.plugins.volumes.persistent_volume_claims import VolumeError

NONE = -1
"""Instead of a volume's number: no volume."""


def affinity_of(volume: PersistentVolume) -> NodeSelector | None:
    """Where a volume can be reached; None: everywhere."""
    return None if volume.spec.node_affinity is None else volume.spec.node_affinity.required


@lru_cache(maxsize=1 << 16)
def affinity_terms(affinity: NodeSelector) -> tuple[NodeTerm, ...]:
    """A volume's node affinity, ready to match. Volumes match by labels: conditions on fields always hold."""
    return tuple(NodeTerm(term.labels, ()) for term in node_terms(affinity))


class Reach:
    """The nodes of a view that each distinct affinity allows."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._everywhere = np.arange(len(nodes))
        self._known: dict[NodeSelector, NDArray[np.intp]] = {}
        self._by_label: dict[str, dict[str, NDArray[np.intp]]] = {}

    def indices(self, affinity: NodeSelector | None) -> NDArray[np.intp]:
        """The nodes that an affinity allows, by index."""
        if affinity is None:
            return self._everywhere
        known = self._known.get(affinity)
        if known is None:
            known = self._known[affinity] = self._allowed(affinity_terms(affinity))
        return known

    def _allowed(self, terms: tuple[NodeTerm, ...]) -> NDArray[np.intp]:
        if len(terms) == 1 and len(terms[0].labels) == 1 and terms[0].labels[0].operator is Operator.IN:
            return self._labelled(terms[0].labels[0].key, terms[0].labels[0].values)
        return np.flatnonzero(_matching_any(terms, self._nodes))

    def _labelled(self, key: str, values: frozenset[str]) -> NDArray[np.intp]:
        """The nodes with one of a label's values: local volumes need this once for every node."""
        by_value = self._by_label.get(key)
        if by_value is None:
            by_value = self._by_label[key] = _by_value(self._nodes.label(key))
        found = [by_value[value] for value in values if value in by_value]
        if len(found) == 1:
            return found[0]
        return np.sort(np.concatenate(found)) if found else self._everywhere[:0]


def reached_nodes(affinity: NodeSelector, nodes: Nodes) -> NDArray[np.bool_]:
    """Which nodes an affinity allows. Shape (nodes,)."""
    return _matching_any(affinity_terms(affinity), nodes)


def _matching_any(terms: Iterable[NodeTerm], nodes: Nodes) -> NDArray[np.bool_]:
    mask = np.zeros(len(nodes), bool)
    for term in terms:
        mask |= nodes.matching_term(term)
    return mask


def _by_value(label: Label) -> dict[str, NDArray[np.intp]]:
    """The nodes that have each value of a label, by index."""
    order = np.argsort(label.codes, kind="stable")
    codes, starts = np.unique(label.codes[order], return_index=True)
    groups = zip(codes.tolist(), np.split(order, starts[1:]), strict=True)
    return {label.vocabulary.values[code] or "": indices for code, indices in groups if code != ABSENT}


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """The volumes a claim would take.

    choice: the number in `volumes` of the volume on each node, or NONE. Shape (nodes,).
    """

    claim: PersistentVolumeClaim
    volumes: Sequence[PersistentVolume]
    choice: NDArray[np.intp]


def match_volumes(
    claims: Iterable[PersistentVolumeClaim],
    by_class: Callable[[str], Collection[PersistentVolume]],
    nodes: Nodes,
) -> list[Match]:
    """The volume of every claim on every node, smaller claims first; no volume is taken twice.

    by_class: the volumes of a storage class.
    """
    reach = Reach(nodes)
    matches: list[Match] = []
    taken: list[tuple[dict[str, int], NDArray[np.intp]]] = []
    for claim in sorted(claims, key=lambda each: storage_size(each.spec.resources.requests)):
        candidates = _candidates(claim, by_class(claim_class(claim)))
        choice = np.full(len(nodes), NONE, np.intp)
        left = len(nodes)
        for number, volume in enumerate(candidates):
            if not left:
                break
            here = reach.indices(affinity_of(volume))
            here = here[choice[here] == NONE]
            for numbers, choices in taken:
                if volume.name in numbers:
                    here = here[choices[here] != numbers[volume.name]]
            choice[here] = number
            left -= len(here)
        matches.append(Match(claim, candidates, choice))
        taken.append(({volume.name: number for number, volume in enumerate(candidates)}, choice))
    return matches


def _candidates(claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume]) -> list[PersistentVolume]:
    """The volumes of its class that a claim could take somewhere, the best first."""
    try:
        return matching_volumes(claim, volumes)
    except SelectorError as error:
        raise VolumeError(str(error)) from error
