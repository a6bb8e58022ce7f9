"""InterPodAffinity: pods that want to be near other pods, or away from them, in both directions.

Directions: what the incoming pod wants of pods on nodes, and what those want of the incoming pod. Pods on
nodes are grouped by class and by terms, so each distinct class or set of terms is matched once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from moorage.api.affinity import AffinityTerm, PodTerms, WeightedTerm, pod_terms
from moorage.api.node import Namespace, Node
from moorage.api.pod import Pod
from moorage.api.selectors import SelectorError
from moorage.cluster.columns import ABSENT
from moorage.cluster.objects import Objects
from moorage.cluster.pods import PodClass
from moorage.config.args import InterPodAffinityArgs
from moorage.framework.cycle import CycleState, StateKey
from moorage.framework.events import Action, Interest, Resource, on
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes
from moorage.framework.points import MAX_SCORE, Scores
from moorage.framework.status import SKIP, Code, Status, unresolvable
from moorage.framework.verdict import Reason, Verdict
from moorage.plugins.common.domains import Counts, DomainCounts, count_by_domain
from moorage.plugins.common.hints import Remembered, is_placed

NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_AWAY = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"

_REASONS = (Reason((NOT_NEAR,), Code.UNRESOLVABLE), Reason((NOT_AWAY,)), Reason((UNWELCOME,)))

_NO_LABELS: Mapping[str, str] = {}

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A term of the incoming pod, with the namespaces its selector means now."""

    term: AffinityTerm
    namespaces: frozenset[str]

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod is meant.

        A namespace selector that an unlabelled namespace meets means every namespace: kube-scheduler
        resolves selectors to names, and compares what is left with no labels at all.
        """
        covered = namespace in self.namespaces or self.term.namespace_selector.matches(_NO_LABELS)
        return covered and self.term.selector.matches(labels)


def _wanted(term: AffinityTerm, objects: Objects) -> Wanted:
    namespaces = term.namespaces
    if not term.namespace_selector.empty:
        chosen = (n.name for n in objects.of(Namespace) if term.namespace_selector.matches(n.labels))
        namespaces = namespaces.union(chosen)
    return Wanted(term, namespaces)


@dataclass(frozen=True, slots=True)
class FilterState:
    """Which domains have what."""

    near: list[Wanted]
    away: list[Wanted]
    namespace_labels: Mapping[str, str]
    matching_near: DomainCounts
    """Pods that match all the affinity terms, by domain of each term's key."""
    matching_away: DomainCounts
    """Pods that match an anti-affinity term, by domain of its key."""
    unwelcoming: DomainCounts
    """Pods with an anti-affinity term that means the incoming pod, by domain of its key."""

    def is_near(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod matches all affinity terms."""
        return bool(self.near) and all(each.matches(namespace, labels) for each in self.near)


_FILTER: StateKey[FilterState] = StateKey("InterPodAffinity/filter")
_SCORE: StateKey[DomainCounts] = StateKey("InterPodAffinity/score")


class InterPodAffinity:
    """Counts pods by topology domain, once per incoming pod and topology key."""

    name = "InterPodAffinity"

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignore_existing = args.ignore_preferred_terms_of_existing_pods
        self._namespaces = handle.objects.of(Namespace)
        self._terms_of = Remembered(pod_terms)

    # What may help

    def events(self) -> tuple[Interest, ...]:
        """Pods may come, go or change their labels, and nodes come or change their domains."""
        return (
            on(
                Resource.POD,
                Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE,
                self._pod_helps,
                per_template=True,
            ),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._node_helps, per_template=True),
        )

    def _pod_helps(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        if old is not None and new is not None and new.uid == pod.uid:
            return True  # with other labels it is not the pod any more that others keep away from
        if any(each is not None and not is_placed(each) for each in (old, new)):
            return False
        wants = self._terms_of(pod)
        was_near, is_near = self._is_near(wants, old), self._is_near(wants, new)
        if is_near and not was_near:
            return True
        if was_near and not is_near and self._is_near(wants, pod):
            return True  # the last of its kind may have gone: the first of its kind may go anywhere
        if any(self._means(term, old) and not self._means(term, new) for term in wants.required_anti):
            return True
        return (
            old is not None
            and new is None
            and any(self._means(term, pod) for term in self._terms_of(old).required_anti)
        )

    def _is_near(self, wants: PodTerms, pod: Pod | None) -> bool:
        """Whether a pod is one that all affinity terms mean."""
        return bool(wants.required) and all(self._means(term, pod) for term in wants.required)

    def _means(self, term: AffinityTerm, pod: Pod | None) -> bool:
        if pod is None or not term.selector.matches(pod.labels):
            return False
        namespace = self._namespaces.get("", pod.namespace)
        return term.covers_namespace(pod.namespace, _NO_LABELS) or (
            namespace is not None and term.namespace_selector.matches(namespace.labels)
        )

    def _node_helps(self, pod: Pod, old: Node | None, new: Node) -> bool:
        wants = self._terms_of(pod)
        if not wants.required and not wants.required_anti:
            return True  # refused for the sake of other pods, whose topology keys are not known here
        if old is None:
            return bool(wants.required_anti) or any(t.topology_key in new.labels for t in wants.required)
        before, after = old.labels, new.labels
        joins = (key for term in wants.required if (key := term.topology_key) in after)
        leaves = (key for term in wants.required_anti if (key := term.topology_key) in before)
        return any(before.get(key) != after.get(key) for key in (*joins, *leaves))

    # Filtering

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Count pods that matter to this one, and pods to which this one matters."""
        try:
            state = _count(pod, nodes)
        except SelectorError as error:
            return unresolvable(f"parsing pod: {error}")
        if not state.near and not state.away and not state.unwelcoming.total():
            return SKIP
        cycle.write(_FILTER, state)
        return None

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        """Affinity first, then the pod's own anti-affinity, then that of pods on nodes."""
        state = cycle.read_or(_FILTER, lambda: _count(pod, nodes.all))
        codes = np.zeros(len(nodes), np.int8)
        codes[_unwelcome(state, pod, nodes)] = 3
        codes[_too_close(state, nodes)] = 2
        codes[~_near_enough(state, pod, nodes)] = 1
        return Verdict(codes, _REASONS)

    # Scoring

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Add up, by domain, what pods there are worth to this one and it to them."""
        worth = self._worth(pod, nodes)
        if not worth.by_key:
            return SKIP
        cycle.write(_SCORE, worth)
        return None

    def _worth(self, pod: Pod, nodes: Nodes) -> DomainCounts:
        worth = DomainCounts()
        preferred = pod_terms(pod).preferred
        if self._ignore_existing and not preferred:
            return worth
        for weighted in preferred:
            wanted = _wanted(weighted.term, nodes.objects)
            key = weighted.term.topology_key
            counts = _count_classes(nodes, key, wanted.matches)
            if counts.any():
                worth.add(key, counts * weighted.weight)
        labels = _namespace_labels(pod, nodes.objects)
        _add_groups(worth, nodes, lambda terms: self._claims(terms, pod, labels))
        return worth

    def _claims(self, terms: PodTerms, pod: Pod, labels: Mapping[str, str]) -> Iterable[tuple[str, int]]:
        """What a pod with these terms says of the incoming pod: (topology key, weight)."""
        required = (
            [WeightedTerm(self._hard_weight, term) for term in terms.required] if self._hard_weight else []
        )
        return (
            (each.term.topology_key, each.weight)
            for each in (*required, *terms.preferred)
            if each.term.matches(pod, labels)
        )

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """The sum over topology keys of what a node's domain is worth; may be negative."""
        scores = np.zeros(len(nodes), np.int64)
        for key, worth in cycle.read_or(_SCORE, lambda: self._worth(pod, nodes)).by_key.items():
            scores += worth[nodes.label(key).codes]
        return scores

    def normalize_score(self, cycle: CycleState, pod: Pod, nodes: Nodes, scores: Scores) -> Scores:
        """The worst node gets 0, the best 100."""
        smallest = int(scores.min())
        distance = int(scores.max()) - smallest
        if distance == 0:
            return np.zeros(len(nodes), np.int64)
        return (float(MAX_SCORE) * ((scores - smallest) / float(distance))).astype(np.int64)


def _count(pod: Pod, nodes: Nodes) -> FilterState:
    terms = pod_terms(pod)
    objects = nodes.objects
    state = FilterState(
        [_wanted(term, objects) for term in terms.required],
        [_wanted(term, objects) for term in terms.required_anti],
        _namespace_labels(pod, objects),
        DomainCounts(),
        DomainCounts(),
        DomainCounts(),
    )
    for each in state.near:
        key = each.term.topology_key
        state.matching_near.add(key, _count_classes(nodes, key, state.is_near))
    for each in state.away:
        key = each.term.topology_key
        state.matching_away.add(key, _count_classes(nodes, key, each.matches))
    labels = state.namespace_labels
    _add_groups(state.unwelcoming, nodes, lambda group: _refusals(group, pod, labels))
    return state


def _refusals(terms: PodTerms, pod: Pod, labels: Mapping[str, str]) -> Iterable[tuple[str, int]]:
    """The anti-affinity terms that mean the incoming pod: (topology key, 1)."""
    return ((term.topology_key, 1) for term in terms.required_anti if term.matches(pod, labels))


def _namespace_labels(pod: Pod, objects: Objects) -> Mapping[str, str]:
    namespace = objects.of(Namespace).get("", pod.namespace)
    return _NO_LABELS if namespace is None else namespace.labels


def _count_classes(nodes: Nodes, key: str, matches: Callable[[str, Mapping[str, str]], bool]) -> Counts:
    """How many pods that `matches` (namespace, labels) are in each domain of a topology key."""

    def wanted(each: PodClass) -> bool:
        return matches(each.namespace, dict(each.labels))

    rows = nodes.snapshot.pods.nodes_of(wanted)
    return count_by_domain(nodes.snapshot.label(key), rows)


def _add_groups(
    counts: DomainCounts, nodes: Nodes, claims: Callable[[PodTerms], Iterable[tuple[str, int]]]
) -> None:
    """Add, by domain, what the terms of pods on nodes claim: `claims` gives (topology key, weight)."""
    pods = nodes.snapshot.pods
    groups = pods.terms
    by_key: dict[str, dict[int, int]] = {}
    for code, terms in groups.vocabulary.items():
        for key, weight in claims(terms):
            weights = by_key.setdefault(key, {})
            weights[code] = weights.get(code, 0) + weight
    for key, weights in by_key.items():
        claimed = np.zeros(len(groups.vocabulary) + 1, bool)
        table = np.zeros(len(groups.vocabulary) + 1, np.int64)
        claimed[list(weights)] = True
        table[list(weights)] = list(weights.values())
        claiming = np.flatnonzero(claimed[groups.codes])
        rows = pods.node_rows[claiming]
        column = nodes.snapshot.label(key)
        # A claim counts as made, even if claims cancel out, where its pod's node is in a domain at all.
        if (column.codes[rows] != ABSENT).any():
            counts.add(key, count_by_domain(column, rows, table[groups.codes[claiming]]))


def _unwelcome(state: FilterState, pod: Pod, nodes: Nodes) -> Mask:
    """Where a pod's anti-affinity keeps the incoming pod away."""
    refusals = partial(_refusals, pod=pod, labels=state.namespace_labels)
    keys = set(state.unwelcoming.by_key)
    if nodes.changes is not None:
        keys.update(key for _, info in nodes.changes.added for key, _ in refusals(info.terms))
    mask = np.zeros(len(nodes), bool)
    for key in keys:
        domains = nodes.label(key).codes
        count = state.unwelcoming.at(key, domains)
        if nodes.changes is not None:
            weight = partial(_weight_for, key=key, claims=refusals)
            count = count + nodes.changes.by_terms(weight) * (domains != ABSENT)
        mask |= count > 0
    return mask


def _weight_for(terms: PodTerms, key: str, claims: Callable[[PodTerms], Iterable[tuple[str, int]]]) -> int:
    return sum(weight for each, weight in claims(terms) if each == key)


def _too_close(state: FilterState, nodes: Nodes) -> Mask:
    """Where the incoming pod's own anti-affinity keeps it away."""
    mask = np.zeros(len(nodes), bool)
    for each in state.away:
        domains = nodes.label(each.term.topology_key).codes
        count = state.matching_away.at(each.term.topology_key, domains)
        if nodes.changes is not None:
            for other in state.away:
                if other.term.topology_key == each.term.topology_key:
                    count = count + _change_of(nodes, other.matches) * (domains != ABSENT)
        mask |= count > 0
    return mask


def _near_enough(state: FilterState, pod: Pod, nodes: Nodes) -> Mask:
    """Where every affinity term finds a pod, or where the first pod of a kind may start."""
    in_domains = np.ones(len(nodes), bool)
    if not state.near:
        return in_domains
    found = np.ones(len(nodes), bool)
    change = None if nodes.changes is None else _change_of(nodes, state.is_near)
    total = np.full(len(nodes), state.matching_near.total())
    for each in state.near:
        domains = nodes.label(each.term.topology_key).codes
        in_domains &= domains != ABSENT
        count = state.matching_near.at(each.term.topology_key, domains)
        if change is not None:
            # Each term with this key counts the pod once more.
            count = count + change * sum(n.term.topology_key == each.term.topology_key for n in state.near)
            total = total + change * (domains != ABSENT)
        found &= count > 0
    if state.is_near(pod.namespace, pod.labels):
        found |= total == 0
    return in_domains & found


def _change_of(nodes: Nodes, matches: Callable[[str, Mapping[str, str]], bool]) -> NDArray[np.int64]:
    assert nodes.changes is not None
    return nodes.changes.matching(lambda each: matches(each.namespace, dict(each.labels)))
