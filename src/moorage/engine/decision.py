"""The result of one scheduling attempt of a pod, with its reasons."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

import msgspec

from moorage.api.limits import PodLimitError
from moorage.api.pod import Pod
from moorage.framework.extenders.extenders import ExtenderError
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.extension_points import PostFilterResult
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import PluginError, Status
from moorage.framework.runtime.scores import ScoreTable

NO_NODES = "no nodes available to schedule pods"


class Decision(msgspec.Struct, eq=False, dict=True):
    """The node chosen for a pod, or why it is unschedulable. Texts are made when they are read."""

    pod: Pod
    node: str | None
    """The chosen node; None if there is none."""
    feasible: Nodes
    """The nodes that passed all filters."""
    scores: ScoreTable | None
    """The scores of the feasible nodes; None where there was nothing to compare."""
    diagnosis: Diagnosis
    evaluated: int
    """Number of nodes evaluated."""
    post_filter: PostFilterResult | None = None
    """The result of post-filters for an unschedulable pod."""
    error: PluginError | ExtenderError | PodLimitError | None = None
    """The error that ended the attempt: a failure of a plugin or an extender, or a pod beyond the limits."""

    @cached_property
    def message(self) -> str:
        """Why the pod is unschedulable, as in its condition; empty if it has a node."""
        if self.node is not None:
            return ""
        if self.error is not None:
            return str(self.error)
        return self.diagnosis.message() if self.diagnosis.total else NO_NODES

    def scores_of(self, node: str) -> dict[str, int]:
        """Each plugin's weighted score of a feasible node."""
        if self.scores is None:
            return {}
        index = self.feasible.names.index(node)
        return {plugin: int(scores[index]) for plugin, scores in self.scores.by_plugin.items()}

    def best(self) -> list[str]:
        """The nodes that share the best total; any of them may be chosen."""
        if self.scores is None:
            return self.feasible.names
        totals = self.scores.totals
        return self.feasible.where(totals == totals.max()).names


def refusal_at_a_node(status: Status) -> str:
    """The message of a pod that reserve or permit rejected on the chosen node."""
    reasons = sorted(f"{count} {reason}" for reason, count in Counter(status.reasons).items())
    return "0/1 nodes are available:" + (f" {', '.join(reasons)}." if reasons else "")
