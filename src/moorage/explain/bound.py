"""A pod on a node: would it be placed there again today, and if not, what has changed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.engine.decision import Decision
from moorage.explain.evaluation import AllRefusals, PluginScores, RefusedNodes


@dataclass(frozen=True, slots=True, eq=False)
class BoundPod:
    """What has changed for a pod since it got its node.

    is_same: whether it would be placed on its node again, by chance where several are equally good.
    rejected: why its node is rejected today. behind: by how much its node is behind today's best, plugin by
        plugin, if it passes all filters.
    new_nodes, new_pods: the nodes of the cluster and the pods on its node that are younger.
    """

    node: str
    is_same: bool
    since: datetime | None
    rejected: Sequence[RefusedNodes]
    behind: dict[str, int]
    new_nodes: Sequence[str]
    new_pods: Sequence[str]


def bound_pod(
    pod: Pod, decision: Decision, refusals: AllRefusals, scores: Sequence[PluginScores], cache: Cache
) -> BoundPod:
    """What has changed for a pod that is on a node; the decision is about the pod without it."""
    node, since = pod.spec.node_name, _bound_at(pod)
    row = decision.feasible.snapshot.row_of.get(node)
    rejected = () if row is None else refusals.of(row)
    young = [each for each in cache.nodes() if _is_after(each.metadata.creation_timestamp, since)]
    on_node = () if row is None else decision.feasible.snapshot.pods_of(row).infos
    return BoundPod(
        node,
        node in decision.best(),
        since,
        rejected,
        _behind(decision, scores, node),
        sorted(each.name for each in young),
        sorted(info.pod.key for info in on_node if _is_after(_bound_at(info.pod), since)),
    )


def _bound_at(pod: Pod) -> datetime | None:
    """When a pod got its node; if that is not known, when it was created."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            return condition.last_transition_time
    return pod.status.start_time or pod.metadata.creation_timestamp


def _is_after(time: datetime | None, since: datetime | None) -> bool:
    return time is not None and since is not None and time > since


def _behind(decision: Decision, scores: Sequence[PluginScores], node: str) -> dict[str, int]:
    names = decision.feasible.names
    if decision.scores is None or decision.node is None or node not in names:
        return {}
    best, own = int(np.argmax(decision.scores.totals)), names.index(node)
    parts = {each.plugin: int(each.weighted[best]) - int(each.weighted[own]) for each in scores}
    return {plugin: difference for plugin, difference in parts.items() if difference}
