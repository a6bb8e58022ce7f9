"""Evict pods: from the node that the pod could have, or the pods that keep it away from a whole domain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from moorage.api.affinity import AffinityTerm, placed_pod_terms
from moorage.api.node import Namespace
from moorage.api.pod import Pod
from moorage.cluster.pod_table import PodInfo, claims_of
from moorage.explain.evaluation import Rows
from moorage.explain.help.change import Situation
from moorage.explain.help.problem import Bits, Offer, Problem
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes

_MADE_ROOM_FOR: Final = (
    "NodeResourcesFit",
    "NodePorts",
    "NodeVolumeLimits",
    "VolumeRestrictions",
    "InterPodAffinity",
    "PodTopologySpread",
)
"""Filters that may accept a node when pods have left it."""
_AFFINITY: Final = "InterPodAffinity"
_VOLUMES: Final = "VolumeRestrictions"
_BOUND_TO_NODE: Final = ("DaemonSet", "Node")
"""Owners whose pods come back to the same node."""
_MAX_GROUPS: Final = 4
_NODES_OF_GROUP: Final = 3
"""Number of nodes of a group that are looked at more closely."""
_MAX_VICTIMS: Final = 16


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict one pod."""

    pod: Pod

    kind: str = "evict"

    def __str__(self) -> str:
        return f"evict {self.pod.key}"

    def apply(self, situation: Situation) -> Situation:
        """Without the pod."""
        return situation.removing(self.pod)

    def details(self) -> dict[str, Any]:
        """The pod, and the node that it is on."""
        return {"pod": self.pod.key, "node": self.pod.spec.node_name, "priority": self.pod.priority}


def offers(problem: Problem) -> Iterator[Offer]:
    """The fewest pods on some of the nodes where it helps, then those that keep the pod away from domains."""
    yield from _on_nodes(problem)
    yield from _in_domains(problem)
    yield from _of_claims(problem)


def _on_nodes(problem: Problem) -> Iterator[Offer]:
    concerned = [plugin for plugin in _MADE_ROOM_FOR if problem.refused_by(plugin).any()]
    pods = _evictable(problem)
    if not concerned or not len(pods):
        return
    helped = problem.accepted_without(pods, *concerned) & problem.refused_bits
    left = problem.refused_bits & ~helped
    is_candidate = helped != 0
    signatures = sorted(set(left[is_candidate].tolist()), key=lambda bits: (bits.bit_count(), bits))
    for signature in signatures[:_MAX_GROUPS]:
        rows = np.flatnonzero(is_candidate & (left == signature))
        for row in rows[np.argsort(problem.shortage[rows], kind="stable")][:_NODES_OF_GROUP].tolist():
            yield from _on_row(problem, pods, row, int(helped[row]))


def _evictable(problem: Problem) -> Rows:
    """The rows of pods, in the table of pods, that do not come back to their node."""
    infos = problem.snapshot.pods.infos
    return np.array([row for row, info in enumerate(infos) if not _comes_back(info.pod)], np.intp)


def _comes_back(pod: Pod) -> bool:
    """Whether the owner of a pod puts another one on the same node."""
    return any(owner.kind in _BOUND_TO_NODE for owner in pod.metadata.owner_references)


def _on_row(problem: Problem, pods: Rows, row: int, helped: int) -> Iterator[Offer]:
    """As few pods on a node as make some filters accept it."""
    here = pods[problem.snapshot.pods.node_rows[pods] == row]
    infos = problem.snapshot.pods.infos
    # The first are put back first: the important ones, then the small ones.
    order = sorted(here.tolist(), key=lambda pod: (-infos[pod].pod.priority, _size(problem, infos[pod])))
    accepts = problem.accepts(helped)

    def fits(gone: Sequence[int]) -> bool:
        removed = np.array(sorted(gone), np.intp)
        changes = HypotheticalPods(problem.snapshot, 1, np.zeros_like(removed), removed)
        return accepts(Nodes(problem.snapshot, np.array([row], np.intp), changes))

    gone = _fewest(order, fits)
    if not gone or len(gone) > _MAX_VICTIMS:
        return
    cleared = np.zeros(len(problem.snapshot), np.int64)
    cleared[row] = helped
    changes = tuple(Evict(infos[pod].pod) for pod in gone)
    cost = len(gone) + max(infos[pod].pod.priority for pod in gone) / 1e10
    yield Offer(changes, cleared, cost)


def _size(problem: Problem, info: PodInfo) -> float:
    """How much a pod holds of what is requested."""
    held = info.load.amounts
    return sum(held.get(name, 0) / amount for name, amount in problem.requests.items())


def _fewest(pods: Sequence[int], fits: Callable[[Sequence[int]], bool]) -> list[int]:
    """Pods without which it fits, and with any of them it does not: others are put back, many at a time."""
    gone = list(pods)
    blocks = [list(pods)]
    while blocks:
        block = blocks.pop()
        without = [pod for pod in gone if pod not in block]
        if fits(without):
            gone = without
        elif len(block) > 1:
            middle = len(block) // 2
            # The first half is looked at first: the stack's top.
            blocks += [block[middle:], block[:middle]]
    return gone


def _in_domains(problem: Problem) -> Iterator[Offer]:
    """The pods that keep the pod away from a domain of several nodes, by their anti-affinity or its own."""
    if not problem.refused_by(_AFFINITY).any():
        return
    conflicts = _conflicts(problem)
    keys = {key for key, _ in conflicts}
    for _, rows in zip(range(_MAX_GROUPS), problem.groups(_AFFINITY), strict=False):
        found: dict[frozenset[str], tuple[int, list[Pod]]] = {}
        for row in rows.tolist():
            labels = problem.snapshot.nodes[row].labels
            pods: dict[str, Pod] = {}
            for key in keys & labels.keys():
                pods |= conflicts.get((key, labels[key]), {})
            if pods and len(pods) <= _MAX_VICTIMS and not any(map(_comes_back, pods.values())):
                found.setdefault(frozenset(pods), (row, list(pods.values())))
        for row, victims in sorted(found.values(), key=lambda each: len(each[1]))[:_NODES_OF_GROUP]:
            yield problem.on_row(row, _AFFINITY, *map(Evict, victims))


def _conflicts(problem: Problem) -> dict[tuple[str, str], dict[str, Pod]]:
    """Pods on nodes that the pod may not be near to, by uid, for each topology key and value."""
    snapshot = problem.snapshot
    own = placed_pod_terms(problem.pod).required_anti
    matches = _Matches(problem)
    found: dict[tuple[str, str], dict[str, Pod]] = {}
    for info, row in zip(snapshot.pods.infos, snapshot.pods.node_rows.tolist(), strict=True):
        anti = info.terms.required_anti
        if not own and not anti:
            continue
        keys = [term.topology_key for term in own if matches(term, info.pod)]
        keys += [term.topology_key for term in anti if matches(term, problem.pod)]
        for key in keys:
            value = snapshot.nodes[row].labels.get(key) if row >= 0 else None
            pods = None if value is None else found.setdefault((key, value), {})
            if pods is not None and len(pods) <= _MAX_VICTIMS:
                pods[info.pod.uid] = info.pod
    return found


class _Matches:
    """Whether affinity terms match pods; kept by namespace and labels."""

    def __init__(self, problem: Problem) -> None:
        self._namespaces = problem.snapshot.objects.of(Namespace)
        self._known: dict[tuple[AffinityTerm, str, tuple[tuple[str, str], ...]], bool] = {}

    def __call__(self, term: AffinityTerm, pod: Pod) -> bool:
        key = (term, pod.namespace, tuple(pod.labels.items()))
        known = self._known.get(key)
        if known is None:
            namespace = self._namespaces.get("", pod.namespace)
            labels = {} if namespace is None else namespace.labels
            known = self._known[key] = term.matches(pod, labels)
        return known


def _of_claims(problem: Problem) -> Iterator[Offer]:
    """The pods that use a claim which only one pod may use."""
    if _VOLUMES not in problem.cluster_wide:
        return
    claims = claims_of(problem.pod)
    users = [info.pod for info in problem.snapshot.pods.infos if claims & info.claims]
    if users and not any(map(_comes_back, users)):
        cleared: Bits = np.full(len(problem.snapshot), problem.bit(_VOLUMES), np.int64)
        yield Offer(tuple(map(Evict, users)), cleared, len(users))
