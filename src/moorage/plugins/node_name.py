"""NodeName: a pod with spec.nodeName fits only that node."""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.client.kinds import Kind
from moorage.cluster.columns import ABSENT
from moorage.cluster.object_tables import Objects
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import NODE_FOR_ANY_POD, DependsOn
from moorage.framework.interface.events import Action, Interest, Resource, on
from moorage.framework.interface.filter_result import ALL, FilterResult, Reason, refuse_where
from moorage.framework.interface.nodes import Nodes, NodeView
from moorage.framework.interface.status import Code

OTHER_NODE = "node(s) didn't match the requested node name"

_OTHER = Reason((OTHER_NODE,), Code.UNRESOLVABLE)


class NodeName:
    """Rejects every node but the one in spec.nodeName."""

    name = "NodeName"
    watched_kinds: tuple[Kind, ...] = ()

    def events(self) -> tuple[Interest, ...]:
        """The node is added."""
        return (on(Resource.NODE, Action.ADD),)

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn:
        """The node's name."""
        return DependsOn(reads=pod.spec.node_name) if pod.spec.node_name else NODE_FOR_ANY_POD

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Without spec.nodeName all nodes pass."""
        if not pod.spec.node_name:
            return ALL
        row = nodes.snapshot.row_of.get(pod.spec.node_name, ABSENT)
        return refuse_where(nodes.row_numbers() != row, OTHER_NODE, resolvable=False)

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> Reason | None:
        """As `filter`, for one node."""
        return None if pod.spec.node_name in ("", node.name) else _OTHER
