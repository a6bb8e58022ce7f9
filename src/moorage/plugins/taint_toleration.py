"""TaintToleration: taints keep pods away, or make a node less welcome."""

from __future__ import annotations

import numpy as np

from moorage.api.node import Taint
from moorage.api.pod import Pod
from moorage.api.taints import PREFER_NO_SCHEDULE, keeps_away, tolerated
from moorage.framework.cycle import CycleState
from moorage.framework.nodes import Nodes
from moorage.framework.numbers import proportional
from moorage.framework.points import Scores
from moorage.framework.verdict import Verdict, refuse_where

UNTOLERATED = "node(s) had untolerated taint(s)"


class TaintToleration:
    """Judges each distinct set of taints once, however many nodes carry it."""

    name = "TaintToleration"

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        """Refuse nodes with a NoSchedule or NoExecute taint that the pod does not tolerate."""
        tolerations = pod.spec.tolerations
        kept_away = nodes.taints.judge(lambda taints: keeps_away(taints, tolerations))
        return refuse_where(kept_away, UNTOLERATED, resolvable=False)

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """How many PreferNoSchedule taints the pod does not tolerate."""
        tolerations = [t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE)]

        def untolerated(taints: tuple[Taint, ...]) -> int:
            unwelcoming = (taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE)
            return sum(not tolerated(taint, tolerations) for taint in unwelcoming)

        return nodes.taints.judge(untolerated, np.int64)

    def normalize_score(self, cycle: CycleState, pod: Pod, nodes: Nodes, scores: Scores) -> Scores:
        """The fewer the better."""
        return proportional(scores, reverse=True)
