"""One scheduling cycle for one pod.

    pre_filter -> filter -> no node: post_filter, diagnosis
                         -> one node: that one, unscored
                         -> several:  pre_score -> score -> normalise -> weight -> pick

Extenders are asked after the filters, after the scores, and by preemption. They are the only reason why a
cycle may pause; without any it runs from start to end (`Engine.decide`).

The cycle reads a snapshot and changes nothing in it: production, simulation and what-if call the same code.
Every node is scored, unless the configuration asks for a share of them (`sampling`).
"""

from __future__ import annotations

import logging
import random

import numpy as np

from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.engine.decision import Decision
from moorage.engine.pausing import at_once
from moorage.engine.sampling import Sampling
from moorage.framework.cycle import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.events import EXTENDER
from moorage.framework.extenders import ExtenderError, Extenders
from moorage.framework.nodes import Nodes
from moorage.framework.points import PostFilterResult, Scores
from moorage.framework.runtime import Framework
from moorage.framework.scores import ScoreTable
from moorage.framework.status import Code, PluginError
from moorage.framework.templates import Templates

log = logging.getLogger(__name__)

_NO_ROWS = np.zeros(0, np.intp)


class Engine:
    """Decides for one pod after another.

    remembers: keep what plugins said of nodes for the next pods of the template; the answers are the same.
    """

    def __init__(
        self, percentage_of_nodes_to_score: int = 0, seed: int | None = None, *, remembers: bool = True
    ) -> None:
        self._sampling = Sampling(percentage_of_nodes_to_score)
        self._random = random.Random(seed)
        self._templates = Templates() if remembers else None

    def decide(
        self, framework: Framework, pod: Pod, snapshot: Snapshot, cycle: CycleState | None = None
    ) -> Decision:
        """Choose a node for a pod, or find out why there is none; for profiles without extenders."""
        return at_once(self.decide_pausing(framework, pod, snapshot, cycle))

    async def decide_pausing(
        self, framework: Framework, pod: Pod, snapshot: Snapshot, cycle: CycleState | None = None
    ) -> Decision:
        """The same, waiting for what extenders say; meanwhile the snapshot must not be brought up to date."""
        cycle = cycle or CycleState()
        everywhere = Nodes(snapshot)
        total = len(snapshot)
        diagnosis = Diagnosis(total)
        if not total:
            return Decision(pod, None, everywhere, None, diagnosis, 0)
        if self._templates is not None:
            cycle.template = self._templates.of(pod, total)
        extenders = framework.handle.extenders
        has_extenders = len(extenders) > 0
        order = snapshot.search_order() if self._sampling.is_wanted(framework) else None
        try:
            count = evaluated = 0
            candidates = framework.pre_filter(cycle, pod, everywhere, diagnosis)
            if candidates is not None and pod.status.nominated_node_name:
                nominated = await _nominated_node(framework, cycle, pod, everywhere, diagnosis)
                if len(nominated):
                    return Decision(pod, nominated.names[0], nominated, None, diagnosis, 1)
            if candidates is not None:
                feasible = framework.filter(cycle, pod, candidates, diagnosis)
                if order is not None:
                    feasible = self._sampling.sample(framework, pod, order, candidates, feasible, diagnosis)
                if has_extenders:
                    feasible = await _extended(extenders, pod, feasible, diagnosis)
                count = len(feasible)
                evaluated = count + diagnosis.refused_count
            if not count:
                arranged = await _make_room(framework, cycle, pod, everywhere, diagnosis)
                return Decision(pod, None, _nowhere(snapshot), None, diagnosis, evaluated, arranged)
            if count == 1:
                return Decision(pod, feasible.names[0], feasible, None, diagnosis, evaluated)
            if has_extenders:
                scores, is_scored = await _scored(framework, cycle, pod, feasible)
                chosen = self._any_of_best(scores.totals, is_scored)
            else:
                scores = framework.score(cycle, pod, feasible)
                chosen = self._best_of(scores.totals)
            return Decision(pod, feasible.name(chosen), feasible, scores, diagnosis, evaluated)
        except (PluginError, ExtenderError) as error:
            return Decision(pod, None, _nowhere(snapshot), None, diagnosis, 0, error=error)

    def _best_of(self, totals: Scores) -> int:
        """Where the best total is: of several, the first from a random place on."""
        start = self._random.randrange(len(totals))
        after = start + int(totals[start:].argmax())
        if not start:
            return after
        before = int(totals[:start].argmax())
        return before if totals[before] > totals[after] else after

    def _any_of_best(self, totals: Scores, is_scored: Scores) -> int:
        """Where the best total is: of several, any of those that an extender has spoken of."""
        best = np.flatnonzero(totals == totals.max())
        spoken_of = best[is_scored[best] > 0]
        return int(self._random.choice(spoken_of if len(spoken_of) else best))


def _nowhere(snapshot: Snapshot) -> Nodes:
    return Nodes(snapshot, _NO_ROWS)


async def _nominated_node(
    framework: Framework, cycle: CycleState, pod: Pod, everywhere: Nodes, diagnosis: Diagnosis
) -> Nodes:
    """The node that was freed for the pod, if it fits there now: then no other node is looked at."""
    nominated = everywhere.named([pod.status.nominated_node_name])
    nominated = framework.filter(cycle, pod, nominated, diagnosis)
    if not framework.handle.extenders:
        return nominated
    try:
        return await framework.handle.extenders.filter(pod, nominated, diagnosis)
    except ExtenderError as error:
        log.warning("%s is looked at with all other nodes: %s", pod.status.nominated_node_name, error)
        return everywhere.named([])


async def _extended(extenders: Extenders, pod: Pod, feasible: Nodes, diagnosis: Diagnosis) -> Nodes:
    """The nodes that the extenders let pass, too; if they refused any, whatever happens may help the pod."""
    left = await extenders.filter(pod, feasible, diagnosis)
    if len(left) != len(feasible):
        diagnosis.plugins.add(EXTENDER)
    return left


async def _scored(
    framework: Framework, cycle: CycleState, pod: Pod, nodes: Nodes
) -> tuple[ScoreTable, Scores]:
    """The scores of plugins and extenders, and of which nodes an extender has spoken."""
    if framework.at("score"):
        table = framework.score(cycle, pod, nodes)
    else:
        table = ScoreTable(np.zeros(len(nodes), np.int64))
    return await framework.handle.extenders.add_scores(pod, nodes, table)


async def _make_room(
    framework: Framework, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
) -> PostFilterResult | None:
    """Ask the post-filters, and take down what they say."""
    if not framework.at("post_filter"):
        return None
    arranged = await framework.post_filter(cycle, pod, nodes, diagnosis)
    if arranged.status.code is not Code.SUCCESS:
        diagnosis.post_filter_message = arranged.status.message
    return arranged
