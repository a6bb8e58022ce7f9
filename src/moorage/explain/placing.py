"""Decisions that are applied to a simulated cluster, so that the next ones see them."""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.explain.report import Report, report
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.status import Code
from moorage.sim.cluster import SimulatedCluster


def placed(cluster: SimulatedCluster, pod: Pod) -> Report:
    """Decide about one pod, and apply the decision, so that the next pod sees it.

    A pod that is already on a node is removed first: then the decision explains why it would go there.
    """
    if standing := cluster.not_tried(pod):
        return Report(pod.key, None, standing, (), 0)
    pod = cluster.take_out(pod)
    cycle = CycleState()
    decision = cluster.decide(pod, cycle)
    made = report(decision)
    if decision.node is not None:
        status = cluster.bind(pod, decision.node, cycle)
        if status.code is not Code.SUCCESS:
            by = f"{status.plugin}: " if status.plugin else ""
            return Report(pod.key, None, f"{by}{status.message}", made.nodes, made.tied)
    elif decision.post_filter is not None and decision.post_filter.nominated_node:
        cluster.cache.nominations.put(pod, decision.post_filter.nominated_node)
    return made
