"""InterPodAffinity: extension points, events and hints.

Terms count in both directions: those of the incoming pod, and those of existing pods that match it. Existing
pods are grouped by class and by terms, so each distinct class or set of terms is matched once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.api.affinity import AffinityTerm, PodTerms, placed_pod_terms, pod_terms
from moorage.api.node import Namespace, Node
from moorage.api.pod import Pod
from moorage.api.remembered import IdentityCache
from moorage.api.selectors import SelectorError
from moorage.client import kinds
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_table import PodInfo
from moorage.cluster.snapshot import Snapshot
from moorage.config.args import InterPodAffinityArgs
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.events import Action, EventIndex, Interest, Resource, on
from moorage.framework.interface.extension_points import MAX_SCORE, Scores
from moorage.framework.interface.filter_result import FilterResult, Reason
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Code, Status, unresolvable
from moorage.plugins.hint_helpers import event_labels, is_placed, selector_labels
from moorage.plugins.inter_pod_affinity.filtering import (
    AffinityCounts,
    IncrementalAffinityCounts,
    count_affinity,
    count_by_node,
)
from moorage.plugins.inter_pod_affinity.scoring import (
    AffinityScores,
    CountedAffinityScores,
    IncrementalAffinityScores,
)
from moorage.plugins.inter_pod_affinity.terms import (
    NO_LABELS,
    ExistingTermWeights,
    IncomingTerms,
    resolve_terms,
)
from moorage.plugins.topology_counts.incremental import IncrementalCounts, LatestIncrementalCounts

AFFINITY_RULES = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY_RULES = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY_RULES = "node(s) didn't satisfy existing pods anti-affinity rules"

_REASONS = (
    Reason((AFFINITY_RULES,), Code.UNRESOLVABLE),
    Reason((ANTI_AFFINITY_RULES,)),
    Reason((EXISTING_ANTI_AFFINITY_RULES,)),
)

_FILTER: StateKey[AffinityCounts] = StateKey("InterPodAffinity/filter")
_SCORE: StateKey[AffinityScores | None] = StateKey("InterPodAffinity/score")


class InterPodAffinity:
    """Counts pods by topology domain.

    Pods of one equivalence class share counts, which are updated as pods are added and removed.
    """

    name = "InterPodAffinity"
    watched_kinds: tuple[Kind, ...] = (kinds.NAMESPACE,)

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignore_existing = args.ignore_preferred_terms_of_existing_pods
        self._namespaces = handle.objects.of(Namespace)
        self._resolves_by_name = handle.version.resolved_namespace_selectors
        self._terms_of = IdentityCache(pod_terms)
        self._placed_terms_of = IdentityCache(placed_pod_terms)
        self._incremental_counts = LatestIncrementalCounts()
        self._kept: StateKey[_ClassState] = StateKey("kept for an equivalence class by InterPodAffinity")

    # Events

    def events(self) -> tuple[Interest, ...]:
        """Pods added, deleted or relabelled, and nodes added or moved to another domain."""
        return (
            on(
                Resource.POD,
                Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE,
                self._pod_helps,
                per_equivalence_class=True,
                index=EventIndex(self._wanted_labels, self._event_labels),
            ),
            on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_LABEL,
                self._node_helps,
                per_equivalence_class=True,
            ),
        )

    def _pod_helps(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        if old is not None and new is not None and new.uid == pod.uid:
            return True  # with other labels, the anti-affinity of existing pods may not match it any more
        if any(each is not None and not is_placed(each) for each in (old, new)):
            return False
        incoming_terms = self._terms_of(pod)
        matched_before, matches_now = (
            self._matches_all(incoming_terms, old),
            self._matches_all(incoming_terms, new),
        )
        if matches_now and not matched_before:
            return True
        if matched_before and not matches_now and self._matches_all(incoming_terms, pod):
            return True  # the last match may be gone: then a pod that matches its own terms fits everywhere
        if any(
            self._matches(term, old) and not self._matches(term, new) for term in incoming_terms.required_anti
        ):
            return True
        return (
            old is not None
            and new is None
            and any(self._matches(term, pod) for term in self._placed_terms_of(old).required_anti)
        )

    def _wanted_labels(self, pod: Pod) -> set[tuple[str, str]] | None:
        """Labels of the pods that a pod's terms match; for affinity, a pod must match all terms."""
        incoming_terms = self._terms_of(pod)
        affinity = [selector_labels((term.selector,)) for term in incoming_terms.required]
        known = next((labels for labels in affinity if labels is not None), None if affinity else set())
        anti_affinity = selector_labels(term.selector for term in incoming_terms.required_anti)
        return None if known is None or anti_affinity is None else known | anti_affinity

    def _event_labels(self, old: Pod | None, new: Pod | None) -> set[tuple[str, str]] | None:
        """The labels of a pod; a deleted pod's anti-affinity may have matched any other pod."""
        if old is not None and new is None and self._placed_terms_of(old).required_anti:
            return None
        return event_labels(old, new)

    def _matches_all(self, incoming_terms: PodTerms, pod: Pod | None) -> bool:
        """Whether a pod matches all affinity terms."""
        return bool(incoming_terms.required) and all(
            self._matches(term, pod) for term in incoming_terms.required
        )

    def _matches(self, term: AffinityTerm, pod: Pod | None) -> bool:
        if pod is None or not term.selector.matches(pod.labels):
            return False
        namespace = self._namespaces.get("", pod.namespace)
        return term.covers_namespace(pod.namespace, NO_LABELS) or (
            namespace is not None and term.namespace_selector.matches(namespace.labels)
        )

    def _node_helps(self, pod: Pod, old: Node | None, new: Node) -> bool:
        incoming_terms = self._terms_of(pod)
        if not incoming_terms.required and not incoming_terms.required_anti:
            return True  # rejected by anti-affinity of other pods, whose topology keys are not known here
        if old is None:
            return bool(incoming_terms.required_anti) or any(
                t.topology_key in new.labels for t in incoming_terms.required
            )
        before, after = old.labels, new.labels
        joins = (key for term in incoming_terms.required if (key := term.topology_key) in after)
        leaves = (key for term in incoming_terms.required_anti if (key := term.topology_key) in before)
        return any(before.get(key) != after.get(key) for key in (*joins, *leaves))

    # Filtering

    def skips_pod(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> bool:
        """Whether no affinity applies between the pod and those on nodes."""
        memory = self._memory(cycle, pod)
        if memory is None:
            return False
        snapshot = nodes.snapshot
        if not memory.has_terms and not _may_be_meant(pod, snapshot):
            return True
        return memory.has_no_affinity_counts(pod, snapshot) and memory.has_no_affinity_scores(pod, snapshot)

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Count pods that this pod's terms match, and pods whose terms match this pod."""
        try:
            memory = self._memory(cycle, pod)
            if memory is not None and memory.has_no_affinity_counts(pod, nodes.snapshot):
                return SKIP
            affinity_counts = self._affinity_counts(cycle, pod, nodes)
        except SelectorError as error:
            return unresolvable(f"parsing pod: {error}")
        if not affinity_counts.is_relevant:
            return SKIP
        cycle.write(_FILTER, affinity_counts)
        return None

    def _affinity_counts(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> AffinityCounts:
        memory = self._memory(cycle, pod)
        if memory is None:
            return count_affinity(self._resolved(pod, pod_terms(pod), nodes), nodes)
        return memory.affinity_counts(self._incremental_counts.of(nodes.snapshot), pod)

    def _resolved(self, pod: Pod, terms: PodTerms, nodes: Nodes) -> IncomingTerms:
        return resolve_terms(pod, terms, nodes.objects, by_name=self._resolves_by_name)

    def _memory(self, cycle: CycleState, pod: Pod) -> _ClassState | None:
        """The cache of the pod's equivalence class; None: there is none."""
        if cycle.equivalence_class is None:
            return None
        memory = cycle.equivalence_class.read(self._kept)
        if memory is None:
            info = cycle.equivalence_class.info(pod)
            # Terms that are invalid, and too many, count for nothing on a node: these are read from the pod.
            memory = _ClassState((info and info.terms) or pod_terms(pod), self._resolves_by_name)
            cycle.equivalence_class.write(self._kept, memory)
        return memory

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Affinity first, then the pod's own anti-affinity, then that of pods on nodes."""
        affinity_counts = cycle.read_or(_FILTER, lambda: self._affinity_counts(cycle, pod, nodes.all))
        return FilterResult(affinity_counts.evaluate(nodes), _REASONS)

    def filters_by_node(self, cycle: CycleState, pod: Pod, nodes: Nodes, moving: Sequence[PodInfo]) -> bool:
        """Whether moving pods matter, by the pod's terms and their own, in no domain of several nodes."""
        memory = self._memory(cycle, pod)
        terms = pod_terms(pod) if memory is None else memory.terms
        return count_by_node(self._resolved(pod, terms, nodes), nodes, moving)

    # Scoring

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Add up, by domain, the weights of preferred terms in both directions."""
        affinity_scores = self._affinity_scores(cycle, pod, nodes)
        if affinity_scores is None or not affinity_scores.is_relevant:
            return SKIP
        cycle.write(_SCORE, affinity_scores)
        return None

    def _affinity_scores(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> AffinityScores | None:
        """The raw scores; None if no term counts."""
        memory = self._memory(cycle, pod)
        if memory is not None and memory.has_no_affinity_scores(pod, nodes.snapshot):
            return None
        terms = pod_terms(pod) if memory is None else memory.terms
        if self._ignore_existing and not terms.preferred:
            return None
        if memory is not None:
            return memory.affinity_scores(self._incremental_counts.of(nodes.snapshot), pod, self._hard_weight)
        incoming_terms = self._resolved(pod, terms, nodes)
        return CountedAffinityScores(
            incoming_terms, ExistingTermWeights(incoming_terms.incoming, self._hard_weight), nodes
        )

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """The sum over topology keys of the weights in a node's domain; may be negative."""
        affinity_scores = cycle.read_or(_SCORE, lambda: self._affinity_scores(cycle, pod, nodes))
        return np.zeros(len(nodes), np.int64) if affinity_scores is None else affinity_scores.of(nodes)

    def normalize_score(self, cycle: CycleState, pod: Pod, nodes: Nodes, scores: Scores) -> Scores:
        """The worst node gets 0, the best 100."""
        smallest = int(scores.min())
        distance = int(scores.max()) - smallest
        if distance == 0:
            return np.zeros(len(nodes), np.int64)
        if distance > len(scores):
            return _between_bounds(scores - smallest, distance)
        return _between_bounds(np.arange(distance + 1), distance).take(scores - smallest)


def _between_bounds(above: Scores, distance: int) -> Scores:
    """Scores scaled linearly between the lowest and the highest."""
    return (float(MAX_SCORE) * (above / float(distance))).astype(np.int64)


class _ClassState:
    """The cache of one equivalence class."""

    __slots__ = (
        "__weakref__",
        "_affinity_counts",
        "_affinity_scores",
        "_has_required",
        "_incoming_terms",
        "_namespaces_seen",
        "_no_affinity_counts_at",
        "_no_affinity_scores_at",
        "_resolves_by_name",
        "has_terms",
        "terms",
    )

    def __init__(self, terms: PodTerms, resolves_by_name: bool) -> None:
        self.terms = terms
        self.has_terms = bool(terms)
        self._resolves_by_name = resolves_by_name
        self._has_required = bool(terms.required or terms.required_anti)
        self._incoming_terms: IncomingTerms | None = None
        self._namespaces_seen = -1
        self._affinity_counts: IncrementalAffinityCounts | None = None
        self._affinity_scores: IncrementalAffinityScores | None = None
        self._no_affinity_counts_at: object = None
        self._no_affinity_scores_at: object = None

    def _resolved_terms(self, pod: Pod, objects: Objects) -> IncomingTerms:
        """The resolved terms; the same object as long as they are equal."""
        version = objects.of(Namespace).version
        incoming_terms = self._incoming_terms
        if incoming_terms is None or version != self._namespaces_seen:
            self._namespaces_seen = version
            new = resolve_terms(pod, self.terms, objects, by_name=self._resolves_by_name)
            if new != incoming_terms:
                incoming_terms = self._incoming_terms = new
        return incoming_terms

    def has_no_affinity_counts(self, pod: Pod, snapshot: Snapshot) -> bool:
        """Whether no node can be rejected: no terms apply, or the last result, which says so, is valid."""
        if not self._has_required and not _may_be_meant(pod, snapshot):
            return True
        return self._no_affinity_counts_at is not None and self._no_affinity_counts_at == _terms_version(
            snapshot
        )

    def affinity_counts(self, incremental: IncrementalCounts, pod: Pod) -> IncrementalAffinityCounts:
        """The pods that matter for filtering, as they are now."""
        self._use(incremental)
        incoming_terms = self._resolved_terms(pod, incremental.snapshot.objects)
        affinity_counts = self._affinity_counts
        if affinity_counts is None or not affinity_counts.is_valid_for(incremental, incoming_terms):
            affinity_counts = self._affinity_counts = IncrementalAffinityCounts(incremental, incoming_terms)
        else:
            affinity_counts.catch_up()
        self._no_affinity_counts_at = (
            _terms_version(incremental.snapshot) if affinity_counts.is_unaffected else None
        )
        return affinity_counts

    def has_no_affinity_scores(self, pod: Pod, snapshot: Snapshot) -> bool:
        """Whether no preferred term counts: none apply, or the last result, which says so, is valid."""
        if not self.terms.preferred and not _may_be_meant(pod, snapshot):
            return True
        return self._no_affinity_scores_at is not None and self._no_affinity_scores_at == _terms_version(
            snapshot
        )

    def affinity_scores(
        self, incremental: IncrementalCounts, pod: Pod, required_weight: int
    ) -> IncrementalAffinityScores:
        """The pods that matter for scoring, as they are now."""
        self._use(incremental)
        incoming_terms = self._resolved_terms(pod, incremental.snapshot.objects)
        affinity_scores = self._affinity_scores
        if affinity_scores is None or not affinity_scores.is_valid_for(incremental, incoming_terms):
            existing_terms = ExistingTermWeights(incoming_terms.incoming, required_weight)
            affinity_scores = self._affinity_scores = IncrementalAffinityScores(
                incremental, incoming_terms, existing_terms
            )
        else:
            affinity_scores.catch_up()
        self._no_affinity_scores_at = (
            _terms_version(incremental.snapshot) if affinity_scores.is_unaffected else None
        )
        return affinity_scores

    def _use(self, incremental: IncrementalCounts) -> None:
        incremental.recent_results.use(self, len(incremental.snapshot) * (1 + len(self.terms)))

    def release(self) -> None:
        """Drop all results by row; terms are kept."""
        self._affinity_counts = self._affinity_scores = None


def _may_be_meant(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether terms of pods on nodes may match a pod, by its labels."""
    return snapshot.pods.terms_codes.any_may_mean(pod.labels.items())


def _terms_version(snapshot: Snapshot) -> tuple[Snapshot, int, int, int]:
    """Changes when pods with terms come or go, or namespaces change: then other terms may match.

    It also changes when a node has a label key that no node had: terms with that topology key count then.
    Nothing else matters to a pod that has no terms and that no term matches.
    """
    return (
        snapshot,
        snapshot.pods.terms_moves.position,
        snapshot.objects.of(Namespace).version,
        snapshot.labels.keys_version,
    )
