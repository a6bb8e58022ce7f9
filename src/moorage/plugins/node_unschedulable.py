"""NodeUnschedulable: cordoned nodes take no pods but those that tolerate it."""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.api.taints import UNSCHEDULABLE_TAINT, tolerated
from moorage.framework.cycle import CycleState
from moorage.framework.nodes import Nodes
from moorage.framework.verdict import ALL, Verdict, refuse_where

UNSCHEDULABLE = "node(s) were unschedulable"


class NodeUnschedulable:
    """Refuses cordoned nodes."""

    name = "NodeUnschedulable"

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        """Whoever tolerates the unschedulable taint may go to a cordoned node."""
        if tolerated(UNSCHEDULABLE_TAINT, pod.spec.tolerations):
            return ALL
        return refuse_where(nodes.unschedulable, UNSCHEDULABLE, resolvable=False)
