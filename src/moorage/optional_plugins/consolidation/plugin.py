"""Consolidation: of the nodes where a pod fits, one that will be there longest because of its other pods."""

from __future__ import annotations

from typing import Final

import numpy as np

from moorage import (
    MAX_SCORE,
    NODE_AND_PODS,
    CycleState,
    DependsOn,
    Nodes,
    NodeView,
    Objects,
    Pod,
    PodColumn,
    Scores,
)

SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""The annotation with `"false"` for pods that the cluster autoscaler does not evict."""
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
"""The annotation with `"true"` for pods that Karpenter does not evict."""
MIRROR: Final = "kubernetes.io/config.mirror"
"""The annotation of the mirror of a static pod."""

NOTHING, UNTIL_DONE, UNTIL_MOVED, STAYS = 0, 40, 70, MAX_SCORE
"""How long a pod keeps its node: not at all, until it is done, until it is moved, for as long as it runs."""


class Consolidation:
    """Scores a node by that of its pods that keeps it longest."""

    name = "Consolidation"
    watched_kinds: tuple[()] = ()

    def __init__(self) -> None:
        self._keeps = PodColumn(np.int64, lambda info: keeps_node(info.pod))

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn:
        """The pods on the node."""
        return NODE_AND_PODS

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """From 0 (an empty node) to 100 (one with a pod that cannot be moved). Shape (nodes,)."""
        if nodes.hypothetical_pods is not None:
            return np.array([self.score_node(cycle, pod, node) for node in nodes], np.int64)
        table = nodes.snapshot.pods
        scores = np.zeros(len(nodes.snapshot), np.int64)
        np.maximum.at(scores, table.node_rows, self._keeps.values(table))
        return nodes.pick(scores)

    def score_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        """As `score`, for one node."""
        longest = NOTHING
        for info in node.pods:
            longest = max(longest, keeps_node(info.pod))
            if longest == STAYS:
                break
        return longest


def keeps_node(pod: Pod) -> int:
    """How long a pod keeps its node."""
    annotations, owner = pod.metadata.annotations, pod.controller
    if pod.metadata.deletion_timestamp is not None or MIRROR in annotations:
        return NOTHING
    if owner is not None and owner.kind in ("DaemonSet", "Node"):
        return NOTHING
    if annotations.get(SAFE_TO_EVICT) == "false" or annotations.get(DO_NOT_DISRUPT) == "true":
        return STAYS
    if owner is None:
        return UNTIL_MOVED if annotations.get(SAFE_TO_EVICT) == "true" else STAYS
    return UNTIL_DONE if owner.kind == "Job" else UNTIL_MOVED
