"""Pods that are alike, bins that are alike, and which go into which: the input of a packing model.

A bin is a node that can be had, or one that is there with the room that it has left. Whether a bin accepts
pods of a class is what the production filters say that look at a node alone; what pods take of it is plain
arithmetic. Constraints between pods are left out, but for one: that two pods of a class exclude each other
on a node. So every placement that a scheduler makes is a packing, and the cheapest packing a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.labels import HOSTNAME
from moorage.api.pod import Pod, PodAffinityTerm
from moorage.api.resource_requests import PODS, resource_amounts, spec_requests
from moorage.api.selectors import SelectorError, label_selector
from moorage.explain.evaluation import all_refusals
from moorage.framework.interface.nodes import Nodes
from moorage.planning.catalogue import Offer, new_nodes
from moorage.planning.trial import Trial
from moorage.queue.equivalence_key import equivalence_key

_NODE_FILTERS: Final = frozenset(
    ("NodeAffinity", "NodeDeclaredFeatures", "NodeName", "NodeUnschedulable", "TaintToleration")
)
"""Filters whose answers depend on the pod and the node alone."""

Amounts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PodClass:
    """Pods that are alike."""

    pods: tuple[Pod, ...]
    demand: Amounts
    """What one of them takes, by resource."""
    max_per_node: int
    """1 if two of them exclude each other on a node; else their number."""

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.pods)


@dataclass(frozen=True, slots=True, eq=False)
class Bin:
    """Nodes that are alike, as far as packing can tell."""

    room: Amounts
    accepts: tuple[bool, ...]
    """By pod class."""
    price: float
    offers: tuple[Offer, ...]
    """Where such nodes can be had, with the same shape; none for nodes that are there."""
    limit: int | None
    """How many there are, or can be had of the shape; None: any number."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Pod classes that are to go into bins."""

    classes: tuple[PodClass, ...]
    bins: tuple[Bin, ...]

    def capacity(self, bin: Bin, cls: int) -> int:
        """How many pods of one class a bin takes, if it takes no others."""
        each = self.classes[cls]
        if not bin.accepts[cls]:
            return 0
        needed = each.demand > 0
        fitting = int((bin.room[needed] // each.demand[needed]).min())
        return max(0, min(fitting, each.max_per_node, each.count))

    def homeless(self) -> list[int]:
        """The classes whose pods fit into no bin, even alone."""
        return [
            cls for cls in range(len(self.classes)) if not any(self.capacity(bin, cls) for bin in self.bins)
        ]


def packing_of(trial: Trial, pods: Iterable[Pod], offers: Sequence[Offer]) -> Packing:
    """The packing of pods, at least one, into the nodes of a trial and those that can be had.

    The trial stays as it is.
    """
    groups: dict[bytes, list[Pod]] = {}
    for pod in pods:
        groups.setdefault(equivalence_key(pod), []).append(pod)
    samples = [some[0] for some in groups.values()]
    amounts = [{**resource_amounts(spec_requests(pod)), PODS: 1} for pod in samples]
    names = sorted({name for each in amounts for name in each})
    classes = tuple(
        PodClass(
            tuple(some),
            np.array([each.get(name, 0) for name in names], np.int64),
            1 if _excludes_its_like(some[0]) else len(some),
        )
        for some, each in zip(groups.values(), amounts, strict=True)
    )
    mark = trial.mark()
    there = {node.name for node in trial.nodes()}
    wanted = [next(new_nodes(offer, there)) for offer in offers]
    for node in wanted:
        trial.put_node(node)
    nodes = Nodes(trial.cluster.cache.snapshot())
    accepts = np.array([_accepting(trial, pod, nodes) for pod in samples]).reshape(len(samples), len(nodes))
    room = np.stack([_free(nodes, name) for name in names], axis=1)
    row_of = {name: row for row, name in enumerate(nodes.names)}
    rows = [row_of[node.name] for node in wanted]
    bins = _offered(offers, rows, room, accepts)
    bins += _existing([row_of[name] for name in sorted(there)], room, accepts)
    trial.undo_to(mark)
    return Packing(classes, tuple(bins))


def _free(nodes: Nodes, name: str) -> Amounts:
    if name == PODS:
        return np.asarray(nodes.allowed_pods - nodes.pod_count, np.int64)
    return np.asarray(nodes.allocatable(name) - nodes.requested(name), np.int64)


def _accepting(trial: Trial, pod: Pod, nodes: Nodes) -> NDArray[np.bool_]:
    """Which nodes pass the filters that look at nodes alone."""
    accepted = np.ones(len(nodes), bool)
    for refused in all_refusals(trial.cluster.framework_of(pod), pod, nodes).by_filter:
        if refused.plugin in _NODE_FILTERS:
            accepted[refused.rows] = False
    return accepted


def _offered(
    offers: Sequence[Offer], rows: Sequence[int], room: Amounts, accepts: NDArray[np.bool_]
) -> list[Bin]:
    """Bins for the offers; zones of a shape that no pod distinguishes are one."""
    alike: dict[tuple[str, bytes], list[tuple[Offer, int]]] = {}
    for offer, row in zip(offers, rows, strict=True):
        alike.setdefault((offer.shape.name, accepts[:, row].tobytes()), []).append((offer, row))
    return [
        Bin(
            room[some[0][1]],
            tuple(accepts[:, some[0][1]].tolist()),
            some[0][0].shape.price_per_hour,
            tuple(offer for offer, _ in some),
            some[0][0].shape.max,
        )
        for some in alike.values()
    ]


def _existing(rows: Sequence[int], room: Amounts, accepts: NDArray[np.bool_]) -> list[Bin]:
    """Bins for nodes that are there; nodes with the same room are one, and those without any are left out."""
    alike: dict[tuple[bytes, bytes], list[int]] = {}
    for row in rows:
        alike.setdefault((room[row].tobytes(), accepts[:, row].tobytes()), []).append(row)
    return [
        Bin(room[some[0]], tuple(accepts[:, some[0]].tolist()), 0.0, (), len(some)) for some in alike.values()
    ]


def _excludes_its_like(pod: Pod) -> bool:
    """Whether two pods like this cannot be on one node: by host ports, or anti-affinity to themselves."""
    if pod.host_ports:
        return True
    affinity = pod.spec.affinity
    apart = None if affinity is None else affinity.pod_anti_affinity
    terms = () if apart is None else apart.required_during_scheduling_ignored_during_execution
    return any(_matches_itself(term, pod) for term in terms)


def _matches_itself(term: PodAffinityTerm, pod: Pod) -> bool:
    has_own_namespace = not term.namespaces and term.namespace_selector is None
    if term.topology_key != HOSTNAME or term.mismatch_label_keys or not has_own_namespace:
        return False
    try:
        return label_selector(term.label_selector).matches(pod.labels)
    except SelectorError:
        return False
