"""What came of one attempt to place a pod, with everything that led to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from moorage.api.limits import PodLimitError
from moorage.api.pod import Pod
from moorage.framework.extenders.extenders import ExtenderError
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.extension_points import PostFilterResult
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import PluginError
from moorage.framework.runtime.scores import ScoreTable

NO_NODES = "no nodes available to schedule pods"


@dataclass(eq=False)
class Decision:
    """Where a pod goes, or why it goes nowhere. Texts are made when they are read."""

    pod: Pod
    node: str | None
    """The chosen node; None if there is none."""
    feasible: Nodes
    """The nodes that passed all filters."""
    scores: ScoreTable | None
    """What the feasible nodes scored; None where there was nothing to compare."""
    diagnosis: Diagnosis
    evaluated: int
    """How many nodes were looked at."""
    post_filter: PostFilterResult | None = None
    """What post-filters arranged for a pod that fits nowhere."""
    error: PluginError | ExtenderError | PodLimitError | None = None
    """What ended the attempt: the failure of a plugin or of an extender, or a pod beyond the limits."""

    @cached_property
    def message(self) -> str:
        """Why the pod goes nowhere, in the words of its condition; empty if it has a node."""
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
        """The nodes that share the best total; the choice among them is free."""
        if self.scores is None:
            return self.feasible.names
        totals = self.scores.totals
        return self.feasible.where(totals == totals.max()).names
