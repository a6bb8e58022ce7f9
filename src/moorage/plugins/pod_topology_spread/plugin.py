"""PodTopologySpread: extension points, events and hints."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.remembered import IdentityCache
from moorage.client import kinds
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_table import PodInfo
from moorage.config.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.events import Action, EventIndex, Interest, Resource, on
from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.filter_result import ALL, FilterResult, Reason
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Code, Status
from moorage.plugins.hint_helpers import event_labels, is_placed, selector_labels
from moorage.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM_CONSTRAINTS,
    SpreadConstraint,
    TemplateConstraints,
    constraints,
)
from moorage.plugins.pod_topology_spread.filtering import (
    NO_SPREAD,
    HardSpread,
    IncrementalSpread,
    count_spreads,
)
from moorage.plugins.pod_topology_spread.scoring import (
    IncrementalSpreadScores,
    SpreadScores,
    count_spread_scores,
)
from moorage.plugins.topology_counts.incremental import IncrementalCounts, LatestIncrementalCounts

UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{UNEVEN} (missing required label)"

_REASONS = (Reason((NO_LABEL,), Code.UNRESOLVABLE), Reason((UNEVEN,)))


_FILTER: StateKey[HardSpread] = StateKey("PodTopologySpread/filter")
_SCORE: StateKey[SpreadScores] = StateKey("PodTopologySpread/score")


class PodTopologySpread:
    """Counts matching pods by domain, then compares whole columns.

    Pods of one equivalence class share counts, which are updated as pods are added and removed.
    """

    name = "PodTopologySpread"
    watched_kinds: tuple[Kind, ...] = (
        kinds.SERVICE,
        kinds.REPLICATION_CONTROLLER,
        kinds.REPLICA_SET,
        kinds.STATEFUL_SET,
    )

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self._system_defaults = args.defaulting_type == SYSTEM_DEFAULTING
        defaults = SYSTEM_CONSTRAINTS if self._system_defaults else args.default_constraints
        self._hard_defaults, self._soft_defaults = (
            tuple(each for each in defaults if each.when_unsatisfiable == action)
            for action in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
        )
        self._objects = handle.objects
        self._own = IdentityCache[Pod, tuple[SpreadConstraint, ...]](
            lambda pod: constraints(pod, DO_NOT_SCHEDULE, (), handle.objects)
        )
        self._incremental_counts = LatestIncrementalCounts()
        self._kept: StateKey[_ClassState] = StateKey("kept for an equivalence class by PodTopologySpread")

    # Events

    def events(self) -> tuple[Interest, ...]:
        """Pods added, deleted or relabelled, and nodes added, deleted or with other domains or taints."""
        pod_actions = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION
        node_actions = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return (
            on(
                Resource.POD,
                pod_actions,
                self._pod_changes_counts,
                per_equivalence_class=True,
                index=EventIndex(self._labels_counted, event_labels),
            ),
            on(Resource.NODE, node_actions, self._node_changes_domains, per_equivalence_class=True),
        )

    def _hard(self, pod: Pod) -> tuple[SpreadConstraint, ...]:
        if pod.spec.topology_spread_constraints:
            return self._own(pod)
        # The default ones depend on services and controllers, which come and go.
        return constraints(pod, DO_NOT_SCHEDULE, self._hard_defaults, self._objects)

    def _labels_counted(self, pod: Pod) -> set[tuple[str, str]] | None:
        """Labels of the pods that a pod's own constraints count."""
        if not pod.spec.topology_spread_constraints:
            return None
        return selector_labels(each.selector for each in self._own(pod))

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

    def skips_pod(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> bool:
        """Whether the pod has no constraints, neither its own nor default ones."""
        memory, objects = self._memory(cycle, pod), nodes.objects
        return memory is not None and not memory.hard.of(pod, objects) and not memory.soft.of(pod, objects)

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Count, for every hard constraint, the matching pods in each domain."""
        spread = self._spread(cycle, pod, nodes.all)
        if not spread.spreads:
            return SKIP
        cycle.write(_FILTER, spread)
        return None

    def _spread(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> HardSpread:
        memory = self._memory(cycle, pod)
        hard = self._hard_constraints(memory, pod, nodes.objects)
        if not hard:
            return NO_SPREAD
        if memory is None or memory.is_named:
            return count_spreads(pod, nodes, hard)
        return memory.spread(self._incremental_counts.of(nodes.snapshot), pod, hard)

    def _hard_constraints(
        self, memory: _ClassState | None, pod: Pod, objects: Objects
    ) -> tuple[SpreadConstraint, ...]:
        if memory is not None:
            return memory.hard.of(pod, objects)
        return constraints(pod, DO_NOT_SCHEDULE, self._hard_defaults, objects)

    def _memory(self, cycle: CycleState, pod: Pod) -> _ClassState | None:
        """The cache of the pod's equivalence class; None: there is none."""
        equivalence_class = cycle.equivalence_class
        if equivalence_class is None:
            return None
        memory = equivalence_class.read(self._kept)
        if memory is None:
            memory = _ClassState(
                TemplateConstraints(pod, DO_NOT_SCHEDULE, self._hard_defaults),
                TemplateConstraints(pod, SCHEDULE_ANYWAY, self._soft_defaults),
                is_named=equivalence_class.is_named,
            )
            equivalence_class.write(self._kept, memory)
        return memory

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Reject nodes whose domain would be more than maxSkew ahead of the emptiest one."""
        spread = cycle.read_or(_FILTER, lambda: self._spread(cycle, pod, nodes.all))
        return FilterResult(spread.evaluate(nodes), _REASONS) if spread.spreads else ALL

    def filters_by_node(self, cycle: CycleState, pod: Pod, nodes: Nodes, moving: Sequence[PodInfo]) -> bool:
        """Whether no hard constraint counts a moving pod."""
        hard = self._hard_constraints(self._memory(cycle, pod), pod, nodes.objects)
        matchers = [each.counted(pod) for each in hard]
        classes = {info.pod_class for info in moving} if matchers else set()
        return not any(matcher.matches(each) for matcher in matchers for each in classes)

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Count, for every soft constraint, the matching pods near each feasible node."""
        memory = self._memory(cycle, pod)
        if memory is None:
            soft = constraints(pod, SCHEDULE_ANYWAY, self._soft_defaults, nodes.objects)
        else:
            soft = memory.soft.of(pod, nodes.objects)
        if not soft:
            return SKIP
        cycle.write(_SCORE, self._spread_scores(memory, pod, nodes, soft))
        return None

    def _spread_scores(
        self, memory: _ClassState | None, pod: Pod, nodes: Nodes, soft: tuple[SpreadConstraint, ...]
    ) -> SpreadScores:
        # The system's constraints spread over hosts even where nodes have no zone.
        needs_all_keys = bool(pod.spec.topology_spread_constraints) or not self._system_defaults
        if memory is None or memory.is_named:
            return count_spread_scores(pod, nodes, soft, needs_all_keys=needs_all_keys)
        return memory.spread_scores(
            self._incremental_counts.of(nodes.snapshot), pod, soft, needs_all_keys=needs_all_keys
        ).of(nodes)

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """The weighted number of matching pods in each node's domains; normalizing inverts it."""
        return self._spread_scores_in(cycle, pod, nodes).scores()

    def normalize_score(self, cycle: CycleState, pod: Pod, nodes: Nodes, scores: Scores) -> Scores:
        """The node with the fewest matching pods gets 100, nodes outside the topology 0."""
        return self._spread_scores_in(cycle, pod, nodes).normalized(scores)

    def _spread_scores_in(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> SpreadScores:
        """The scores that `pre_score` prepared, also where it is disabled."""

        def count() -> SpreadScores:
            soft = constraints(pod, SCHEDULE_ANYWAY, self._soft_defaults, nodes.objects)
            return self._spread_scores(None, pod, nodes, soft)

        return cycle.read_or(_SCORE, count)


class _ClassState:
    """The cache of one equivalence class."""

    __slots__ = (
        "__weakref__",
        "_hard_size",
        "_soft_size",
        "_spread",
        "_spread_scores",
        "hard",
        "is_named",
        "soft",
    )

    def __init__(self, hard: TemplateConstraints, soft: TemplateConstraints, *, is_named: bool) -> None:
        self.hard = hard
        self.soft = soft
        self.is_named = is_named
        """Whether each pod requires another node by name: then other nodes' pods count for each."""
        self._spread: IncrementalSpread | None = None
        self._spread_scores: IncrementalSpreadScores | None = None
        self._hard_size = self._soft_size = 0
        """The sizes of these two, as a number of rows."""

    def spread(
        self, incremental: IncrementalCounts, pod: Pod, hard: tuple[SpreadConstraint, ...]
    ) -> IncrementalSpread:
        """The hard constraints, with what they count now."""
        spread = self._spread
        if spread is None or not spread.is_valid_for(incremental, hard):
            spread = self._spread = IncrementalSpread(incremental, pod, hard)
        else:
            spread.catch_up()
        self._hard_size = len(incremental.snapshot) * (1 + len(hard))
        self._use(incremental)
        return spread

    def spread_scores(
        self,
        incremental: IncrementalCounts,
        pod: Pod,
        soft: tuple[SpreadConstraint, ...],
        *,
        needs_all_keys: bool,
    ) -> IncrementalSpreadScores:
        """The soft constraints, with what they count now."""
        spread_scores = self._spread_scores
        if (
            spread_scores is None
            or not spread_scores.is_valid_for(incremental, soft)
            or not spread_scores.catch_up()
        ):
            spread_scores = IncrementalSpreadScores(incremental, pod, soft, needs_all_keys=needs_all_keys)
            self._spread_scores = spread_scores
        self._soft_size = spread_scores.size
        self._use(incremental)
        return spread_scores

    def _use(self, incremental: IncrementalCounts) -> None:
        incremental.recent_results.use(self, self._hard_size + self._soft_size)

    def release(self) -> None:
        """Drop all results by row; constraints are kept."""
        self._spread = self._spread_scores = None
        self._hard_size = self._soft_size = 0


def _counts_near(other: Pod, pod: Pod) -> bool:
    """Whether another pod is one of those that a pod's constraints can count."""
    return is_placed(other) and other.namespace == pod.namespace
