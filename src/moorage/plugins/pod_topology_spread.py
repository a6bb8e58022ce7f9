"""PodTopologySpread: keep a pod's kind spread over zones, hosts or any other node label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.api.labels import HOSTNAME
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.columns import ABSENT
from moorage.config.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from moorage.framework.cycle import CycleState, StateKey
from moorage.framework.events import Action, Interest, Resource, on
from moorage.framework.handle import Handle
from moorage.framework.nodes import Nodes
from moorage.framework.numbers import round_half_away
from moorage.framework.points import MAX_SCORE, Scores
from moorage.framework.status import SKIP, Code, Status
from moorage.framework.verdict import ALL, Reason, Verdict
from moorage.plugins.common.domains import Counts, count_by_domain
from moorage.plugins.common.hints import Remembered, is_placed
from moorage.plugins.common.spread_constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM_CONSTRAINTS,
    Constraint,
    constraints,
    counts_for,
    matching_pods,
)

UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{UNEVEN} (missing required label)"

_REASONS = (Reason((NO_LABEL,), Code.UNRESOLVABLE), Reason((UNEVEN,)))


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """One hard constraint and the pods it counts, by domain."""

    constraint: Constraint
    counts: Counts
    is_domain: NDArray[np.bool_]
    """Which domains exist, by code: those with an eligible node."""
    eligible: NDArray[np.bool_]
    """Which nodes' pods count, by row."""

    @property
    def least(self) -> int:
        """The smallest count of any domain; 0 if there are fewer domains than the constraint wants."""
        existing = self.counts[self.is_domain]
        return int(existing.min()) if len(existing) >= max(self.constraint.min_domains, 1) else 0

    def changed(
        self, pod: Pod, nodes: Nodes, domains: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The count of each node's domain, and the least of all, with that node's own changes made."""
        assert nodes.changes is not None
        selector, namespace = self.constraint.selector, pod.namespace
        more = nodes.changes.matching(lambda each: counts_for(each, selector, namespace))
        count = self.counts[domains] + more * nodes.pick(self.eligible)
        existing = np.flatnonzero(self.is_domain)
        if len(existing) < max(self.constraint.min_domains, 1):
            return count, np.zeros(len(nodes), np.int64)
        # The least of all domains but a node's own is the least, or the next, if the own one is the least.
        order = existing[np.argsort(self.counts[existing], kind="stable")]
        least = self.counts[order[0]]
        next_least = self.counts[order[1]] if len(order) > 1 else np.iinfo(np.int64).max
        of_others = np.where(domains == order[0], next_least, least)
        return count, np.minimum(of_others, np.where(self.is_domain[domains], count, of_others))


@dataclass(slots=True)
class ScoreState:
    """The soft constraints of a pod, counted for the feasible nodes."""

    raw: NDArray[np.float64]
    """Matching pods near each feasible node, weighted; the fewer the better. Shape (nodes,)."""
    ignored: NDArray[np.bool_]
    """Feasible nodes that lack a label: they score 0."""


_FILTER: StateKey[tuple[Spread, ...]] = StateKey("PodTopologySpread/filter")
_SCORE: StateKey[ScoreState] = StateKey("PodTopologySpread/score")


class PodTopologySpread:
    """Counts matching pods by domain once per pod, then compares whole columns."""

    name = "PodTopologySpread"

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self._system_defaults = args.defaulting_type == SYSTEM_DEFAULTING
        self._defaults = SYSTEM_CONSTRAINTS if self._system_defaults else args.default_constraints
        self._objects = handle.objects
        self._own = Remembered[Pod, tuple[Constraint, ...]](
            lambda pod: constraints(pod, DO_NOT_SCHEDULE, (), handle.objects)
        )

    # What may help

    def events(self) -> tuple[Interest, ...]:
        """Pods may come, go or change their labels, and so may nodes with their domains and taints."""
        pod_actions = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
        node_actions = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return (
            on(Resource.POD, pod_actions, self._pod_changes_counts, per_template=True),
            on(Resource.NODE, node_actions, self._node_changes_domains, per_template=True),
        )

    def _hard(self, pod: Pod) -> tuple[Constraint, ...]:
        if pod.spec.topology_spread_constraints:
            return self._own(pod)
        # The default ones depend on services and controllers, which come and go.
        return constraints(pod, DO_NOT_SCHEDULE, self._defaults, self._objects)

    def _pod_changes_counts(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        changed = [each for each in (old, new) if each is not None]
        if not all(each.uid == pod.uid or _counts_near(each, pod) for each in changed):
            return False
        hard = self._hard(pod)
        if old is None or new is None:
            return any(c.selector.matches(each.labels) for each in changed for c in hard)
        tolerates_more = new.uid == pod.uid and old.spec.tolerations != new.spec.tolerations
        if tolerates_more and any(c.honors_taints for c in hard):
            return True  # other nodes' pods count now
        return any(c.selector.matches(old.labels) != c.selector.matches(new.labels) for c in hard)

    def _node_changes_domains(self, pod: Pod, old: Node | None, new: Node | None) -> bool:
        keys = [c.topology_key for c in self._hard(pod)]
        was_domain = old is not None and all(key in old.labels for key in keys)
        is_domain = new is not None and all(key in new.labels for key in keys)
        if old is None or new is None:
            return was_domain or is_domain
        if was_domain != is_domain:
            return True
        moved = any(old.labels.get(key) != new.labels.get(key) for key in keys)
        return is_domain and (moved or old.spec.taints != new.spec.taints)

    # Filtering and scoring

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Count, for every hard constraint, the matching pods in each domain."""
        spreads = self._count(pod, nodes.all)
        if not spreads:
            return SKIP
        cycle.write(_FILTER, spreads)
        return None

    def _count(self, pod: Pod, nodes: Nodes) -> tuple[Spread, ...]:
        hard = constraints(pod, DO_NOT_SCHEDULE, self._defaults, nodes.objects)
        labelled = _having_keys(nodes, hard)
        spreads = []
        for constraint in hard:
            eligible = labelled & constraint.eligible(pod, nodes)
            column = nodes.snapshot.label(constraint.topology_key)
            rows = matching_pods(nodes, constraint.selector, pod.namespace)
            counts = count_by_domain(column, rows[eligible[rows]])
            is_domain = count_by_domain(column, np.flatnonzero(eligible)) > 0
            spreads.append(Spread(constraint, counts, is_domain, eligible))
        return tuple(spreads)

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        """Refuse nodes whose domain would be more than maxSkew ahead of the emptiest one."""
        spreads = cycle.read_or(_FILTER, lambda: self._count(pod, nodes.all))
        if not spreads:
            return ALL
        codes = np.zeros(len(nodes), np.int8)
        for spread in spreads:
            constraint = spread.constraint
            domains = nodes.label(constraint.topology_key).codes
            own = int(constraint.selector.matches(pod.labels))
            if nodes.changes is None:
                skew = spread.counts[domains] + (own - spread.least)
            else:
                count, least = spread.changed(pod, nodes, domains)
                skew = count + own - least
            refused = np.where(domains == ABSENT, 1, np.where(skew > constraint.max_skew, 2, 0))
            codes = np.where(codes == 0, refused, codes)
        return Verdict(codes, _REASONS)

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Count, for every soft constraint, the matching pods near each feasible node."""
        soft = constraints(pod, SCHEDULE_ANYWAY, self._defaults, nodes.objects)
        if not soft:
            return SKIP
        cycle.write(_SCORE, self._weigh(pod, nodes, soft))
        return None

    def _weigh(self, pod: Pod, nodes: Nodes, soft: tuple[Constraint, ...]) -> ScoreState:
        everywhere = nodes.all
        # The system's constraints spread over hosts even where nodes have no zone.
        needs_all_keys = bool(pod.spec.topology_spread_constraints) or not self._system_defaults
        ignored = ~_having_keys(nodes, soft) if needs_all_keys else np.zeros(len(nodes), bool)
        countable = _having_keys(everywhere, soft) if needs_all_keys else np.ones(len(everywhere), bool)
        raw = np.zeros(len(nodes))
        for constraint in soft:
            column = nodes.snapshot.label(constraint.topology_key)
            domains = nodes.label(constraint.topology_key).codes
            rows = matching_pods(nodes, constraint.selector, pod.namespace)
            if constraint.topology_key == HOSTNAME:
                size = len(nodes) - int(np.count_nonzero(ignored))
                near = nodes.pick(np.bincount(rows, minlength=len(everywhere)))
            else:
                empty = column.vocabulary.code("")
                size = _distinct(domains[~ignored], empty)
                counted = countable & constraint.eligible(pod, everywhere)
                rows = rows[counted[rows]]
                counts = count_by_domain(column, rows)
                if empty != ABSENT:
                    # Nodes without the label, where they count at all, are in the domain of an empty label.
                    counts[empty] += np.count_nonzero(column.codes[rows] == ABSENT)
                near = counts[domains]
            credit = near * np.log(float(size + 2)) + float(constraint.max_skew - 1)
            raw += np.where(domains == ABSENT, 0.0, credit)
        raw[ignored] = 0.0
        return ScoreState(raw, ignored)

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """How crowded each node's domains are; normalising turns it round."""
        return round_half_away(self._score_state(cycle, pod, nodes).raw)

    def normalize_score(self, cycle: CycleState, pod: Pod, nodes: Nodes, scores: Scores) -> Scores:
        """The least crowded node gets 100, nodes outside the topology 0."""
        ignored = self._score_state(cycle, pod, nodes).ignored
        judged = scores[~ignored]
        largest = int(judged.max(initial=0))
        if largest == 0:
            return np.where(ignored, 0, MAX_SCORE)
        smallest = int(judged.min())
        return np.where(ignored, 0, MAX_SCORE * (largest + smallest - scores) // largest)

    def _score_state(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> ScoreState:
        return cycle.read_or(
            _SCORE,
            lambda: self._weigh(pod, nodes, constraints(pod, SCHEDULE_ANYWAY, self._defaults, nodes.objects)),
        )


def _counts_near(other: Pod, pod: Pod) -> bool:
    """Whether another pod is one of those that a pod's constraints can count."""
    return is_placed(other) and other.namespace == pod.namespace


def _having_keys(nodes: Nodes, wanted: tuple[Constraint, ...]) -> NDArray[np.bool_]:
    """The nodes that have the labels of all constraints. Shape (nodes,)."""
    mask = np.ones(len(nodes), bool)
    for constraint in wanted:
        mask &= nodes.label(constraint.topology_key).codes != ABSENT
    return mask


def _distinct(domains: NDArray[np.int32], empty: int) -> int:
    """How many domains there are; nodes without the label count as one, together with an empty label."""
    present = np.bincount(domains + 1) > 0
    both = empty != ABSENT and empty + 1 < len(present) and present[0] and present[empty + 1]
    return int(np.count_nonzero(present)) - int(both)
