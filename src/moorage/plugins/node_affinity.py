"""NodeAffinity: nodeSelector, node affinity, and affinity that the scheduler's configuration adds."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from moorage.api.node import Node
from moorage.api.pod import NodeAffinity as Affinity
from moorage.api.pod import Pod, PreferredSchedulingTerm
from moorage.api.remembered import IdentityCache
from moorage.api.selectors import (
    NodeTerm,
    RequiredNodes,
    is_only_named,
    named_nodes,
    node_term,
    node_terms,
    required_nodes,
)
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.config.args import NodeAffinityArgs
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.dependencies import NODE_FOR_ANY_POD, DependsOn
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.filter_result import ALL, FilterResult, Reason
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.interface.status import SKIP, Code, Status, unresolvable
from moorage.framework.runtime.go_arithmetic import proportional
from moorage.plugins.hint_helpers import Answer, explained

NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
NOT_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
CONFLICT = "pod affinity terms conflict"

_REASONS = (Reason((NOT_ENFORCED,), Code.UNRESOLVABLE), Reason((NO_MATCH,), Code.UNRESOLVABLE))
_WANTED: StateKey[RequiredNodes] = StateKey("NodeAffinity/filter")

WeightedTerms = tuple[tuple[int, NodeTerm], ...]
_NOT_ALLOWED = Answer(
    False,
    "added or modified node didn't match scheduler-enforced node affinity "
    "and this event won't make the Pod schedulable",
    v=4,
)
_NOT_WANTED = Answer(False, "node was created or updated, but the pod's NodeAffinity doesn't match")
_NEW_AND_WANTED = Answer(True, "node was created, and matches with the pod's NodeAffinity")
_WANTED_BEFORE = Answer(False, "node updated, but the pod's NodeAffinity hasn't changed")
_WANTED_NOW = Answer(True, "node was updated and the pod's NodeAffinity changed to matched")


class NodeAffinity:
    """Matches nodes by their labels and names."""

    name = "NodeAffinity"
    watched_kinds: tuple[Kind, ...] = ()

    def __init__(self, args: NodeAffinityArgs) -> None:
        added = args.added_affinity or Affinity()
        required = added.required_during_scheduling_ignored_during_execution
        self._enforced = None if required is None else RequiredNodes((), node_terms(required))
        self._adds_preferences = bool(added.preferred_during_scheduling_ignored_during_execution)
        self._added = _weighted(added.preferred_during_scheduling_ignored_during_execution)
        self._wanted_by = IdentityCache(required_nodes)

    def events(self) -> tuple[Interest, ...]:
        """A node with matching labels is added, or a node is relabelled."""
        return (
            on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_LABEL,
                explained(self._is_wanted_now, "node"),
                per_equivalence_class=True,
            ),
        )

    def _is_wanted_now(self, pod: Pod, old: Node | None, new: Node) -> Answer:
        if not self._is_allowed(new):
            return _NOT_ALLOWED
        wanted = self._wanted_by(pod)
        if not wanted.matches(new):
            return _NOT_WANTED
        if old is None:
            return _NEW_AND_WANTED
        return _WANTED_BEFORE if self._is_allowed(old) and wanted.matches(old) else _WANTED_NOW

    def _is_allowed(self, node: Node) -> bool:
        return self._enforced is None or self._enforced.matches(node)

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        """The node's labels and name; pods that differ only in the nodes they name share a class."""
        if named_nodes(pod) is not None:
            return None
        affinity = pod.spec.affinity
        node_affinity = None if affinity is None else affinity.node_affinity
        if node_affinity is None and not pod.spec.node_selector:
            return NODE_FOR_ANY_POD
        return DependsOn(reads=(tuple(pod.spec.node_selector.items()), node_affinity))

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | AbstractSet[str] | None:
        """Narrow the search where every term names its nodes, as the pods of DaemonSets do."""
        names = named_nodes(pod)
        if names is not None:
            return names or unresolvable(CONFLICT)
        wanted = required_nodes(pod)
        if wanted.anything and self._enforced is None:
            return SKIP
        cycle.write(_WANTED, wanted)
        return None

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Reject by the configuration's affinity first, then by the pod's."""
        wanted = cycle.read_or(_WANTED, lambda: required_nodes(pod))
        if wanted.anything and self._enforced is None:
            return ALL
        is_unwanted = ~nodes.required_by(wanted)
        if self._enforced is None:
            return FilterResult(is_unwanted.view(np.int8), _REASONS[1:])
        codes = 2 * is_unwanted.view(np.int8)
        codes[~nodes.required_by(self._enforced)] = 1
        return FilterResult(codes, _REASONS)

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> Reason | None:
        """As `filter`, for one node."""
        if self._enforced is not None and not self._enforced.matches(node.node):
            return _REASONS[0]
        if is_only_named(pod):
            is_wanted = node.name in (named_nodes(pod) or ())
        else:
            is_wanted = cycle.read_or(_WANTED, lambda: required_nodes(pod)).matches(node.node)
        return None if is_wanted else _REASONS[1]

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Skip without preferences; empty preferences count as preferences."""
        return None if self._adds_preferences or _preferences(pod) else SKIP

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """The sum of the weights of the preferences a node meets."""
        scores = np.zeros(len(nodes), np.int64)
        for weight, term in (*self._added, *_weighted(_preferences(pod))):
            scores += weight * nodes.matching_term(term)
        return scores

    def normalize_score(self, cycle: CycleState, pod: Pod, nodes: Nodes, scores: Scores) -> Scores:
        """The best node gets 100."""
        return proportional(scores)


def _node_affinity(pod: Pod) -> Affinity:
    affinity = pod.spec.affinity
    return Affinity() if affinity is None or affinity.node_affinity is None else affinity.node_affinity


def _preferences(pod: Pod) -> tuple[PreferredSchedulingTerm, ...]:
    return _node_affinity(pod).preferred_during_scheduling_ignored_during_execution


def _weighted(preferences: Sequence[PreferredSchedulingTerm]) -> WeightedTerms:
    return tuple(
        (each.weight, node_term(each.preference))
        for each in preferences
        if each.weight and (each.preference.match_expressions or each.preference.match_fields)
    )
