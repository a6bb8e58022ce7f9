"""NodeUnschedulable: cordoned nodes accept only pods that tolerate it."""

from __future__ import annotations

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.taints import UNSCHEDULABLE_TAINT, tolerated
from moorage.client.kinds import Kind
from moorage.cluster.object_tables import Objects
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import NODE_FOR_ANY_POD, DependsOn
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.filter_result import ALL, FilterResult, Reason, refuse_where
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.interface.status import Code
from moorage.plugins.hint_helpers import OTHER_TOLERATES_MORE, TOLERATES_MORE, Answer, explained

UNSCHEDULABLE = "node(s) were unschedulable"

_CORDONED = Reason((UNSCHEDULABLE,), Code.UNRESOLVABLE)


class NodeUnschedulable:
    """Rejects cordoned nodes."""

    name = "NodeUnschedulable"
    watched_kinds: tuple[Kind, ...] = ()

    def events(self) -> tuple[Interest, ...]:
        """A node is uncordoned or added; or a toleration is added to the pod."""
        return (
            on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_TAINT,
                explained(_opens_node, "node"),
                per_equivalence_class=True,
            ),
            on(
                Resource.POD,
                Action.UPDATE_POD_TOLERATION,
                explained(_tolerates_now, ""),
                per_equivalence_class=True,
            ),
        )

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn:
        """The node alone."""
        return DependsOn(reads=pod.spec.tolerations) if pod.spec.tolerations else NODE_FOR_ANY_POD

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Pods that tolerate the unschedulable taint may go to a cordoned node."""
        if tolerated(UNSCHEDULABLE_TAINT, pod.spec.tolerations):
            return ALL
        return refuse_where(nodes.unschedulable, UNSCHEDULABLE, resolvable=False)

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> Reason | None:
        """As `filter`, for one node."""
        if not node.node.spec.unschedulable or tolerated(UNSCHEDULABLE_TAINT, pod.spec.tolerations):
            return None
        return _CORDONED


_OPENS = Answer(True, "node was created or updated, pod may be schedulable now")
_DOES_NOT_OPEN = Answer(False, "node was created or updated, but it doesn't make this pod schedulable")
_OTHER_TOLERATION = Answer(
    False, "a new toleration is added for the unschedulable Pod, but it's an unrelated toleration"
)


def _opens_node(pod: Pod, old: Node | None, new: Node) -> Answer:
    is_opened = not new.spec.unschedulable and (old is None or old.spec.unschedulable)
    return _OPENS if is_opened else _DOES_NOT_OPEN


def _tolerates_now(pod: Pod, old: Pod, new: Pod) -> Answer:
    if new.uid != pod.uid:
        return OTHER_TOLERATES_MORE
    return TOLERATES_MORE if tolerated(UNSCHEDULABLE_TAINT, new.spec.tolerations) else _OTHER_TOLERATION
