"""InterPodAffinity: pods that want to be near other pods, or away from them, in both directions.

Directions: what the incoming pod wants of pods on nodes, and what those want of the incoming pod. Pods on
nodes are grouped by class and by terms, so each distinct class or set of terms is matched once.
"""

from __future__ import annotations

import numpy as np

from moorage.api.affinity import AffinityTerm, PodTerms, placed_pod_terms, pod_terms
from moorage.api.node import Namespace, Node
from moorage.api.pod import Pod
from moorage.api.remembered import Remembered
from moorage.api.selectors import SelectorError
from moorage.cluster.objects import Objects
from moorage.cluster.snapshot import Snapshot
from moorage.config.args import InterPodAffinityArgs
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.events import Action, Interest, Resource, Sieve, on
from moorage.framework.interface.extension_points import MAX_SCORE, Scores
from moorage.framework.interface.filter_result import FilterResult, Reason
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Code, Status, unresolvable
from moorage.plugins.common.affinity_filter import FollowedNeighbours, Neighbours, count_neighbours
from moorage.plugins.common.affinity_terms import NO_LABELS, Claims, Wants, wants_of
from moorage.plugins.common.affinity_worth import FollowedWorth, PlainWorth, Worth
from moorage.plugins.common.following import Follower, Following
from moorage.plugins.common.hints import is_placed, labels_borne, labels_meant

NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_AWAY = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"

_REASONS = (Reason((NOT_NEAR,), Code.UNRESOLVABLE), Reason((NOT_AWAY,)), Reason((UNWELCOME,)))

_FILTER: StateKey[Neighbours] = StateKey("InterPodAffinity/filter")
_SCORE: StateKey[Worth | None] = StateKey("InterPodAffinity/score")


class InterPodAffinity:
    """Counts pods by topology domain.

    Pods of one template share what was counted: it follows the pods that come and go.
    """

    name = "InterPodAffinity"

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignore_existing = args.ignore_preferred_terms_of_existing_pods
        self._namespaces = handle.objects.of(Namespace)
        self._terms_of = Remembered(pod_terms)
        self._placed_terms_of = Remembered(placed_pod_terms)
        self._follower = Follower()
        self._kept: StateKey[_Memory] = StateKey("kept for an equivalence class by InterPodAffinity")

    # What may help

    def events(self) -> tuple[Interest, ...]:
        """Pods may come, go or change their labels, and nodes come or change their domains."""
        return (
            on(
                Resource.POD,
                Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE,
                self._pod_helps,
                per_template=True,
                sieve=Sieve(self._labels_wanted, self._labels_borne),
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
            and any(self._means(term, pod) for term in self._placed_terms_of(old).required_anti)
        )

    def _labels_wanted(self, pod: Pod) -> set[tuple[str, str]] | None:
        """Labels of the pods that a pod's terms mean; to be near, a pod must be meant by all of them."""
        wants = self._terms_of(pod)
        near = [labels_meant((term.selector,)) for term in wants.required]
        known = next((labels for labels in near if labels is not None), None if near else set())
        away = labels_meant(term.selector for term in wants.required_anti)
        return None if known is None or away is None else known | away

    def _labels_borne(self, old: Pod | None, new: Pod | None) -> set[tuple[str, str]] | None:
        """The labels of a pod; one that goes may also have kept others away, whatever those want."""
        if old is not None and new is None and self._placed_terms_of(old).required_anti:
            return None
        return labels_borne(old, new)

    def _is_near(self, wants: PodTerms, pod: Pod | None) -> bool:
        """Whether a pod is one that all affinity terms mean."""
        return bool(wants.required) and all(self._means(term, pod) for term in wants.required)

    def _means(self, term: AffinityTerm, pod: Pod | None) -> bool:
        if pod is None or not term.selector.matches(pod.labels):
            return False
        namespace = self._namespaces.get("", pod.namespace)
        return term.covers_namespace(pod.namespace, NO_LABELS) or (
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

    def skips_pod(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> bool:
        """Whether neither the pod nor those on nodes want anything of each other, as it was the last time."""
        memory = self._memory(cycle, pod)
        if memory is None or not memory.has_no_neighbours(nodes.snapshot):
            return False
        return memory.has_no_worth(nodes.snapshot)

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Count pods that matter to this one, and pods to which this one matters."""
        try:
            memory = self._memory(cycle, pod)
            if memory is not None and memory.has_no_neighbours(nodes.snapshot):
                return SKIP
            neighbours = self._neighbours(cycle, pod, nodes)
        except SelectorError as error:
            return unresolvable(f"parsing pod: {error}")
        if not neighbours.matters:
            return SKIP
        cycle.write(_FILTER, neighbours)
        return None

    def _neighbours(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Neighbours:
        memory = self._memory(cycle, pod)
        if memory is None:
            return count_neighbours(wants_of(pod, pod_terms(pod), nodes.objects), nodes)
        return memory.neighbours(self._follower.of(nodes.snapshot), pod)

    def _memory(self, cycle: CycleState, pod: Pod) -> _Memory | None:
        """What is remembered for pods like this one; None where nothing may be."""
        if cycle.equivalence_class is None:
            return None
        memory = cycle.equivalence_class.read(self._kept)
        if memory is None:
            memory = _Memory(pod_terms(pod))
            cycle.equivalence_class.write(self._kept, memory)
        return memory

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Affinity first, then the pod's own anti-affinity, then that of pods on nodes."""
        neighbours = cycle.read_or(_FILTER, lambda: self._neighbours(cycle, pod, nodes.all))
        return FilterResult(neighbours.judge(nodes), _REASONS)

    # Scoring

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Add up, by domain, what pods there are worth to this one and it to them."""
        worth = self._worth(cycle, pod, nodes)
        if worth is None or not worth.matters:
            return SKIP
        cycle.write(_SCORE, worth)
        return None

    def _worth(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Worth | None:
        """What nodes are worth; None if nobody is asked."""
        memory = self._memory(cycle, pod)
        if memory is not None and memory.has_no_worth(nodes.snapshot):
            return None
        terms = pod_terms(pod) if memory is None else memory.terms
        if self._ignore_existing and not terms.preferred:
            return None
        if memory is not None:
            return memory.worth(self._follower.of(nodes.snapshot), pod, self._hard_weight)
        wants = wants_of(pod, terms, nodes.objects)
        return PlainWorth(wants, Claims(wants.incoming, self._hard_weight), nodes)

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """The sum over topology keys of what a node's domain is worth; may be negative."""
        worth = cycle.read_or(_SCORE, lambda: self._worth(cycle, pod, nodes))
        return np.zeros(len(nodes), np.int64) if worth is None else worth.of(nodes)

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
    """How far above the worst scores are, as scores themselves."""
    return (float(MAX_SCORE) * (above / float(distance))).astype(np.int64)


class _Memory:
    """What is remembered for the pods of one template."""

    __slots__ = (
        "_namespaces_seen",
        "_neighbours",
        "_no_neighbours_at",
        "_no_worth_at",
        "_wants",
        "_worth",
        "terms",
    )

    def __init__(self, terms: PodTerms) -> None:
        self.terms = terms
        self._wants: Wants | None = None
        self._namespaces_seen = -1
        self._neighbours: FollowedNeighbours | None = None
        self._worth: FollowedWorth | None = None
        self._no_neighbours_at: object = None
        self._no_worth_at: object = None

    def _wanted(self, pod: Pod, objects: Objects) -> Wants:
        """What pods of the template want: the same object, as long as it is the same."""
        version = objects.of(Namespace).version
        wants = self._wants
        if wants is None or version != self._namespaces_seen:
            self._namespaces_seen = version
            new = wants_of(pod, self.terms, objects)
            if new != wants:
                wants = self._wants = new
        return wants

    def has_no_neighbours(self, snapshot: Snapshot) -> bool:
        """Whether it is certain, without looking any further, that nothing keeps the pods from any node."""
        return self._no_neighbours_at == _who_speaks_of_whom(snapshot)

    def neighbours(self, following: Following, pod: Pod) -> FollowedNeighbours:
        """The pods that matter for filtering, as they are now."""
        wants = self._wanted(pod, following.snapshot.objects)
        neighbours = self._neighbours
        if neighbours is None or not neighbours.holds(following, wants):
            neighbours = self._neighbours = FollowedNeighbours(following, wants)
        else:
            neighbours.catch_up()
        self._no_neighbours_at = neighbours.is_alone and _who_speaks_of_whom(following.snapshot)
        return neighbours

    def has_no_worth(self, snapshot: Snapshot) -> bool:
        """Whether it is certain, without looking any further, that nobody wishes anything."""
        return self._no_worth_at == _who_speaks_of_whom(snapshot)

    def worth(self, following: Following, pod: Pod, required_weight: int) -> FollowedWorth:
        """The pods that matter for scoring, as they are now."""
        wants = self._wanted(pod, following.snapshot.objects)
        worth = self._worth
        if worth is None or not worth.holds(following, wants):
            claims = Claims(wants.incoming, required_weight)
            worth = self._worth = FollowedWorth(following, wants, claims)
        else:
            worth.catch_up()
        self._no_worth_at = worth.is_alone and _who_speaks_of_whom(following.snapshot)
        return worth


def _who_speaks_of_whom(snapshot: Snapshot) -> tuple[Snapshot, int, int]:
    """Moves when pods with terms come or go, or namespaces change: then terms may mean other pods.

    A pod that wants nothing itself, and whom no term means, has nothing else to ask.
    """
    return snapshot, snapshot.pods.terms_moves.position, snapshot.objects.of(Namespace).version
