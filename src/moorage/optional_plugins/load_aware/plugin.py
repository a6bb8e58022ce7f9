"""LoadAware: a filter that refuses nodes in heavy use, and a score by the predicted use of each node."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage import (
    ALL,
    MAX_SCORE,
    SKIP,
    Action,
    Code,
    CycleState,
    DependsOn,
    FilterResult,
    Handle,
    Interest,
    Node,
    Nodes,
    NodeView,
    Objects,
    Pod,
    Reason,
    Resource,
    Scores,
    StateKey,
    Status,
    microseconds,
    on,
    resource_amounts,
)
from moorage.optional_plugins.load_aware.arguments import (
    MAX_SHAPE_SCORE,
    RESOURCES,
    LoadAwareArgs,
    ShapePoint,
)
from moorage.optional_plugins.load_aware.estimates import Estimate, Estimator
from moorage.optional_plugins.load_aware.polling import Polling
from moorage.optional_plugins.load_aware.readings import (
    NODE_METRICS,
    SECOND,
    TABLES,
    Usage,
    reading_of,
)
from moorage.optional_plugins.load_aware.sources import MetricsApi, PrometheusServer, Source
from moorage.optional_plugins.load_aware.usage import Amounts, PodEstimates, UsageColumns

HIGH_CPU: Final = "node(s) had a high cpu usage"
HIGH_MEMORY: Final = "node(s) had a high memory usage"
REASONS: Final = tuple(
    Reason(texts, Code.UNRESOLVABLE) for texts in ((HIGH_CPU,), (HIGH_MEMORY,), (HIGH_CPU, HIGH_MEMORY))
)
"""Why a node is refused, by the sum of 1 for cpu and 2 for memory, less 1. No eviction is certain to help."""
_FULL: Final = 100
"""Utilization, in percent, that counts for any that is higher."""
_MAX_USE: Final = 1 << 56
"""The most that counts as used of a resource: a hundred times as much fits an int64."""
_MAX_KEPT: Final = 1024
"""Number of declarations that are kept for pods with equal estimates."""
_ESTIMATE: StateKey[Estimate] = StateKey("LoadAware/estimate")

log = logging.getLogger("moorage.load_aware")


class LoadAware:
    """Compares the predicted use of nodes with thresholds, and scores by it."""

    name = "LoadAware"
    watched_kinds: tuple[()] = ()
    listed_kinds = (NODE_METRICS,)

    def __init__(self, args: LoadAwareArgs, handle: Handle) -> None:
        self._handle = handle
        self._estimator = Estimator(args)
        self._estimates = PodEstimates(self._estimator)
        self._warm_up_seconds = float(args.warm_up)
        self._thresholds = args.thresholds
        self._columns = self._new_columns()
        self._refuses = not (args.thresholds.cpu is None and args.thresholds.memory is None)
        self._weights = (args.weights.cpu, args.weights.memory)
        self._total_weight = sum(self._weights)
        self._score_by_use = _scores_by_percent(args.shape)
        self._score_list: list[int] = self._score_by_use.tolist()
        self._declared: dict[tuple[Estimate, bool], DependsOn] = {}
        self._has_noted = handle.is_live
        handle.every(args.interval, Polling(handle, _source(args, handle), args, self._announce_relief).poll)

    def _new_columns(self) -> UsageColumns:
        return UsageColumns(self._estimates, self._handle.profile, self._warm_up_seconds, self._thresholds)

    # Events

    def events(self) -> tuple[Interest, ...]:
        """A node is in less use, there is a new or larger one, or a pod that was not measured is gone."""
        return (
            on(NODE_METRICS.resource, Action.UPDATE),
            on(Resource.NODE, Action.ADD),
            on(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE, _has_more, per_equivalence_class=True),
            on(Resource.POD, Action.DELETE, self._was_estimated, per_equivalence_class=True),
        )

    def _was_estimated(self, pod: Pod, old: Pod, new: Pod | None) -> bool:
        """Whether a pod that is gone counted with an estimate, on a node that may be refused."""
        usage = reading_of(self._handle.objects, self._handle.profile).get(old.spec.node_name or "")
        if usage is None:
            return False
        start = old.status.start_time
        return start is None or microseconds(start) > usage.begin - self._warm_up_seconds * SECOND

    def _announce_relief(self, usage: Usage) -> None:
        """Have refused pods tried again if a node is refused no longer by new usage."""
        if not self._refuses:
            return
        nodes = self._handle.nodes()
        before = self._hot(nodes)
        if before.any() and (before & ~self._hot_with(nodes, usage)).any():
            self._handle.announce(NODE_METRICS.resource, Action.UPDATE)

    def _hot_with(self, nodes: Nodes, usage: Usage) -> NDArray[np.bool_]:
        """Which nodes would be refused with other usage."""
        columns = self._new_columns()
        columns.measure(nodes, usage)
        return columns.refused(nodes) > 0

    def _hot(self, nodes: Nodes) -> NDArray[np.bool_]:
        self._columns.follow(nodes)
        return self._columns.refused(nodes) > 0

    # Filtering

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn:
        """The node, the pods on it, and usage; of the pod, its estimate and whether it is of a DaemonSet."""
        reads = self._estimator.of_pod(pod), _is_exempt(pod)
        declared = self._declared.get(reads)
        if declared is None:
            if len(self._declared) >= _MAX_KEPT:
                self._declared.clear()
            made = DependsOn(pods=True, tables=TABLES, runs_after_filter=False, reads=reads)
            declared = self._declared[reads] = made
        return declared

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """No node is refused for pods of DaemonSets, which are for one node each."""
        return None if self._refuses and not _is_exempt(pod) else SKIP

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Refuse nodes whose predicted use, without this pod, is at a threshold."""
        if not self._refuses or _is_exempt(pod):
            return ALL
        self._columns.follow(nodes)
        self._note_missing(nodes)
        if not self._columns.has_any_usage:
            return ALL
        codes = self._columns.refused(nodes)
        return FilterResult(codes, REASONS) if codes.any() else ALL

    def filter_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> Reason | None:
        """The same for one node."""
        if not self._refuses or _is_exempt(pod):
            return None
        self._columns.follow(node)
        code = self._columns.refused_on(node)
        return REASONS[code - 1] if code else None

    def _note_missing(self, nodes: Nodes) -> None:
        """Say, where nothing is read, that there is no usage."""
        if not self._has_noted and len(nodes) and not self._columns.has_any_usage:
            self._has_noted = True
            log_no_usage()

    # Scoring

    def pre_score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Estimate what the pod will use."""
        cycle.write(_ESTIMATE, self._estimator.of_pod(pod))
        return None

    def score(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Scores:
        """The mean, by weights, of what the shape gives for the predicted use with this pod."""
        estimate = cycle.read_or(_ESTIMATE, lambda: self._estimator.of_pod(pod))
        self._columns.follow(nodes)
        self._note_missing(nodes)
        predicted = self._columns.predicted(nodes)
        total = np.zeros(len(nodes), np.int64)
        for lane, weight in enumerate(self._weights):
            if weight:
                used = predicted[lane] + estimate[lane]
                total += weight * self._score_by_use[_percent(used, nodes.allocatable(RESOURCES[lane]))]
        return total // self._total_weight

    def score_node(self, cycle: CycleState, pod: Pod, node: NodeView) -> int:
        """The same for one node."""
        estimate = cycle.read_or(_ESTIMATE, lambda: self._estimator.of_pod(pod))
        self._columns.follow(node)
        cpu, memory = self._columns.predicted_on(node)
        cpu_weight, memory_weight = self._weights
        total = cpu_weight * self._score_of(cpu + estimate[0], node.allocatable("cpu"))
        total += memory_weight * self._score_of(memory + estimate[1], node.allocatable("memory"))
        return total // self._total_weight

    def _score_of(self, used: int, allocatable: int) -> int:
        percent = min(used, _MAX_USE) * 100 // allocatable if allocatable else _FULL
        return self._score_list[min(_FULL, percent)]


@cache
def log_no_usage() -> None:
    """Say that there is no usage; once in a process, which may make the plugin many times."""
    log.warning("LoadAware: there is no usage of nodes: they count with requests, and none is refused")


def _percent(used: Amounts, allocatable: Amounts) -> Amounts:
    """Utilization in whole percent, at most 100; 100 where there is nothing to use."""
    used = np.minimum(used, _MAX_USE)
    percent: Amounts = np.where(allocatable > 0, used * 100 // np.maximum(allocatable, 1), _FULL)
    return np.minimum(percent, _FULL)


def _source(args: LoadAwareArgs, handle: Handle) -> Source:
    """Where usage is read."""
    if args.prometheus is None:
        return MetricsApi(handle)
    return PrometheusServer(args.prometheus, args.timeout)


def _scores_by_percent(shape: Sequence[ShapePoint]) -> Amounts:
    """The score of each utilization from 0 to 100, on straight lines between the points of a shape."""
    scale = MAX_SCORE // MAX_SHAPE_SCORE
    scores = np.empty(_FULL + 1, np.int64)
    scores[: shape[0].utilization + 1] = shape[0].score * scale
    scores[shape[-1].utilization :] = shape[-1].score * scale
    for left, right in pairwise(shape):
        steps = np.arange(right.utilization - left.utilization + 1)
        rise = (right.score - left.score) * scale * steps // (right.utilization - left.utilization)
        scores[left.utilization : right.utilization + 1] = left.score * scale + rise
    return scores


def _is_exempt(pod: Pod) -> bool:
    """Whether a pod is of a DaemonSet."""
    controller = pod.controller
    return controller is not None and controller.kind == "DaemonSet"


def _has_more(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """Whether a node has more cpu or memory than before."""
    if old is None or new is None:
        return True
    before, after = (resource_amounts(each.status.allocatable) for each in (old, new))
    return any(after.get(name, 0) > before.get(name, 0) for name in RESOURCES)
