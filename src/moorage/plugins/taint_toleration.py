"""TaintToleration: taints repel pods, or lower a node's score."""

from __future__ import annotations

import numpy as np

from moorage.api.node import Node, Taint
from moorage.api.pod import Pod
from moorage.api.taints import PREFER_NO_SCHEDULE, has_untolerated, tolerated
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import NODE_FOR_ANY_POD, DependsOn
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.filter_result import FilterResult, Reason, refuse_where
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.interface.status import Code
from moorage.framework.runtime.go_arithmetic import proportional
from moorage.plugins.hint_helpers import OTHER_TOLERATES_MORE, TOLERATES_MORE, Answer, explained

UNTOLERATED = "node(s) had untolerated taint(s)"

_HAS_UNTOLERATED = Reason((UNTOLERATED,), Code.UNRESOLVABLE)


class TaintToleration:
    """Evaluates each distinct set of taints once for all nodes."""

    name = "TaintToleration"
    watched_kinds: tuple[Kind, ...] = ()

    def events(self) -> tuple[Interest, ...]:
        """A taint is removed, a node without it added, or a toleration added to the pod."""
        return (
            on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_TAINT,
                explained(_is_tolerated_now, "node"),
                per_equivalence_class=True,
            ),
            on(
                Resource.POD,
                Action.UPDATE_POD_TOLERATION,
                explained(_may_tolerate_more, ""),
                per_equivalence_class=True,
            ),
        )

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn:
        """The node's taints."""
        return DependsOn(reads=pod.spec.tolerations) if pod.spec.tolerations else NODE_FOR_ANY_POD

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Reject nodes with a NoSchedule or NoExecute taint that the pod does not tolerate."""
        tolerations = pod.spec.tolerations
        untolerated_rows = nodes.taints.map_values(lambda taints: has_untolerated(taints, tolerations))
        return refuse_where(untolerated_rows, UNTOLERATED, resolvable=False)

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> Reason | None:
        """As `filter`, for one node."""
        return _HAS_UNTOLERATED if has_untolerated(node.node.spec.taints, pod.spec.tolerations) else None

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """How many PreferNoSchedule taints the pod does not tolerate."""
        tolerations = [t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE)]

        def untolerated(taints: tuple[Taint, ...]) -> int:
            unwelcoming = (taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE)
            return sum(not tolerated(taint, tolerations) for taint in unwelcoming)

        return nodes.taints.map_values(untolerated, np.int64)

    def normalize_score(self, cycle: CycleState, pod: Pod, nodes: Nodes, scores: Scores) -> Scores:
        """The fewer the better."""
        return proportional(scores, reverse=True)


_TOLERATED_NOW = Answer(
    True,
    "node was created or updated, and this may make the Pod rejected by TaintToleration plugin "
    "in the previous scheduling cycle schedulable",
)
_NOT_TOLERATED = Answer(
    False, "node was created or updated, but it doesn't change the TaintToleration plugin's decision"
)


def _is_tolerated_now(pod: Pod, old: Node | None, new: Node) -> Answer:
    """Whether a pod tolerates a node's taints now, and did not before."""
    tolerations = pod.spec.tolerations
    if old is not None and not has_untolerated(old.spec.taints, tolerations):
        return _NOT_TOLERATED
    return _NOT_TOLERATED if has_untolerated(new.spec.taints, tolerations) else _TOLERATED_NOW


def _may_tolerate_more(pod: Pod, old: Pod, new: Pod) -> Answer:
    return TOLERATES_MORE if new.uid == pod.uid else OTHER_TOLERATES_MORE
