"""One scheduling cycle for one pod.

    pre_filter -> filter -> no node: post_filter, diagnosis
                         -> one node: that one, unscored
                         -> several:  pre_score -> score -> normalise -> weight -> pick

Extenders are called after the filters, after the scores, and by preemption. They are the only reason why a
cycle may suspend; without any it runs from start to end (`Engine.decide`).

The cycle reads a snapshot and changes nothing in it: production, simulation and what-if call the same code.
Every node is scored, unless the configuration asks for a share of them (`sampling`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from moorage.api.limits import PodLimitError, check_pod
from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.engine.decision import Decision
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.engine.sampling import Sampling
from moorage.framework.cache.equivalence_classes import EquivalenceClass, EquivalenceClasses
from moorage.framework.extenders.extenders import ExtenderError, Extenders
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.events import EXTENDER
from moorage.framework.interface.extension_points import PostFilterResult, Scores
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import PluginError
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.scores import ScoreTable
from moorage.klog import UNHANDLED, Logger, kobj

log = Logger(__name__)

_NO_ROWS = np.zeros(0, np.intp)


class Engine:
    """Decides for one pod after another.

    remembers: cache plugin results for the next pods of the equivalence class; the answers are the same.
    """

    def __init__(
        self, percentage_of_nodes_to_score: int = 0, seed: int | None = None, *, remembers: bool = True
    ) -> None:
        self._sampling = Sampling(percentage_of_nodes_to_score)
        self._random = random.Random(seed)
        self._equivalence_classes = EquivalenceClasses() if remembers else None

    def decide(
        self, framework: Framework, pod: Pod, snapshot: Snapshot, cycle: CycleState | None = None
    ) -> Decision:
        """Choose a node for a pod, or determine why there is none; for profiles without extenders."""
        return run_without_suspending(self.decide_async(framework, pod, snapshot, cycle))

    async def decide_async(
        self,
        framework: Framework,
        pod: Pod,
        snapshot: Snapshot,
        cycle: CycleState | None = None,
        placement: Nodes | None = None,
    ) -> Decision:
        """The same, waiting for extenders; meanwhile the snapshot must not be updated.

        placement: for a member of a group, the nodes among which it is to run; there are no post-filters
        then: room is made for the group as a whole.
        """
        cycle = cycle or CycleState()
        all_nodes = Nodes(snapshot)
        total = len(snapshot)
        diagnosis = Diagnosis(total)
        if placement is not None:
            diagnosis.outside = total - len(placement)
        if total == diagnosis.outside:
            return Decision(pod, None, all_nodes, None, diagnosis, 0)
        try:
            if self._equivalence_classes is None:
                check_pod(pod)
            else:
                cycle.equivalence_class = self._equivalence_classes.of(pod, total)
        except PodLimitError as error:
            return Decision(pod, None, _no_nodes(snapshot), None, diagnosis, 0, error=error)
        extenders = framework.handle.extenders
        has_extenders = len(extenders) > 0
        order = snapshot.search_order() if self._sampling.is_wanted(framework) else None
        try:
            count = evaluated = 0
            candidates = framework.pre_filter(cycle, pod, all_nodes, diagnosis)
            if candidates is None and log.v >= 5:
                _log_pre_filter(pod, diagnosis)
            if candidates is not None and placement is not None and diagnosis.outside:
                candidates = candidates.within(placement)
            if candidates is not None and pod.status.nominated_node_name:
                nominated = await _nominated_node(framework, cycle, pod, placement or all_nodes, diagnosis)
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
            if not count and placement is not None:
                return Decision(pod, None, _no_nodes(snapshot), None, diagnosis, evaluated)
            if not count:
                post_filtered = await _run_post_filters(framework, cycle, pod, all_nodes, diagnosis)
                return Decision(pod, None, _no_nodes(snapshot), None, diagnosis, evaluated, post_filtered)
            if count == 1:
                return Decision(pod, feasible.names[0], feasible, None, diagnosis, evaluated)
            if has_extenders:
                scores, is_scored = await _scored(framework, cycle, pod, feasible)
                chosen = self._pick_best(scores.totals, is_scored)
            else:
                scores = framework.score(cycle, pod, feasible)
                if log.v >= 10:
                    _log_scores(pod, feasible, scores)
                chosen = self.best_of(scores.totals)
            if log.v >= 10:
                _log_totals(pod, feasible, scores)
            return Decision(pod, feasible.name(chosen), feasible, scores, diagnosis, evaluated)
        except (PluginError, ExtenderError) as error:
            return Decision(pod, None, _no_nodes(snapshot), None, diagnosis, 0, error=error)

    def equivalence_class(self, pod: Pod, snapshot: Snapshot) -> EquivalenceClass | None:
        """The equivalence class of a pod; None if nothing is cached for it."""
        known = self._equivalence_classes
        return None if known is None else known.of(pod, len(snapshot))

    def passing(
        self, framework: Framework, pod: Pod, snapshot: Snapshot, names: Sequence[str], cycle: CycleState
    ) -> list[str]:
        """Those of some nodes that pass all filters for a pod."""
        nodes, diagnosis = Nodes(snapshot), Diagnosis(len(snapshot))
        cycle.equivalence_class = self.equivalence_class(pod, snapshot)
        candidates = framework.pre_filter(cycle, pod, nodes, diagnosis)
        if candidates is None:
            return []
        return framework.filter(cycle, pod, candidates.within(nodes.named(names)), diagnosis).names

    def cached_cycle(self, framework: Framework, pod: Pod, snapshot: Snapshot) -> CycleState | None:
        """A pod's cycle after its pre-filters, if cached answers alone decide about the pod; else None."""
        if self._equivalence_classes is None or len(framework.handle.extenders):
            return None
        if self._sampling.is_wanted(framework):
            return None
        cycle = CycleState()
        try:
            like = cycle.equivalence_class = self._equivalence_classes.of(pod, len(snapshot))
            if like is None or like.is_named:
                return None
            framework.pre_filter(cycle, pod, Nodes(snapshot), Diagnosis(len(snapshot)))
        except (PodLimitError, PluginError):
            return None
        return cycle if framework.plan(cycle).is_cached else None

    def best_of(self, totals: Scores) -> int:
        """The index of the best total: of several, the first from a random place on."""
        start = self._random.randrange(len(totals))
        after = start + int(totals[start:].argmax())
        if not start:
            return after
        before = int(totals[:start].argmax())
        return before if totals[before] > totals[after] else after

    def _pick_best(self, totals: Scores, is_scored: Scores) -> int:
        """The index of the best total: of several, any of those that an extender has scored."""
        best = np.flatnonzero(totals == totals.max())
        scored_best = best[is_scored[best] > 0]
        return int(self._random.choice(scored_best if len(scored_best) else best))


def _no_nodes(snapshot: Snapshot) -> Nodes:
    return Nodes(snapshot, _NO_ROWS)


async def _nominated_node(
    framework: Framework, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
) -> Nodes:
    """The node that was freed for the pod, if it fits there now: then no other node is evaluated."""
    nominated = nodes.named([pod.status.nominated_node_name]).within(nodes)
    nominated = framework.filter(cycle, pod, nominated, diagnosis)
    if not framework.handle.extenders:
        return nominated
    try:
        return await framework.handle.extenders.filter(pod, nominated, diagnosis)
    except ExtenderError as error:
        node = pod.status.nominated_node_name
        log.error(error, "Evaluation failed on nominated node", logger=UNHANDLED, pod=kobj(pod), node=node)
        return nodes.named([])


async def _extended(extenders: Extenders, pod: Pod, feasible: Nodes, diagnosis: Diagnosis) -> Nodes:
    """The nodes that pass the extenders, too; if they rejected any, every event may help the pod."""
    left = await extenders.filter(pod, feasible, diagnosis)
    if len(left) != len(feasible):
        diagnosis.plugins.add(EXTENDER)
    return left


async def _scored(
    framework: Framework, cycle: CycleState, pod: Pod, nodes: Nodes
) -> tuple[ScoreTable, Scores]:
    """The scores of plugins and extenders, and which nodes an extender has scored."""
    if framework.at("score"):
        table = framework.score(cycle, pod, nodes)
    else:
        table = ScoreTable(np.zeros(len(nodes), np.int64))
    if log.v >= 10:
        _log_scores(pod, nodes, table)
    return await framework.handle.extenders.add_scores(pod, nodes, table)


async def _run_post_filters(
    framework: Framework, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
) -> PostFilterResult | None:
    """Run the post-filters, and record their result."""
    if not framework.at("post_filter"):
        log.info(3, "No PostFilter plugins are registered, so no preemption will be performed", pod=kobj(pod))
        return None
    post_filtered = await framework.post_filter(cycle, pod, nodes, diagnosis)
    diagnosis.post_filter_message = post_filtered.status.message
    if log.v >= 5:
        message = "Status after running PostFilter plugins for pod"
        log.info(5, message, pod=kobj(pod), status=diagnosis.post_filter_message)
    return post_filtered


def _log_pre_filter(pod: Pod, diagnosis: Diagnosis) -> None:
    status = "" if diagnosis.pre_filter is None else diagnosis.pre_filter.message
    log.info(5, "Status after running PreFilter plugins for pod", pod=kobj(pod), status=status)


def _log_scores(pod: Pod, nodes: Nodes, scores: ScoreTable) -> None:
    """Log each plugin's score of each node."""
    by_plugin = {plugin: points.tolist() for plugin, points in scores.by_plugin.items()}
    ref, message = kobj(pod), "Plugin scored node for pod"
    for place, node in enumerate(nodes.names):
        for plugin, points in by_plugin.items():
            log.info(10, message, pod=ref, plugin=plugin, node=node, score=points[place])


def _log_totals(pod: Pod, nodes: Nodes, scores: ScoreTable) -> None:
    """Log the total scores of all plugins and extenders."""
    ref, message = kobj(pod), "Calculated node's final score for pod"
    for node, total in zip(nodes.names, scores.totals.tolist(), strict=True):
        log.info(10, message, pod=ref, node=node, score=total)
