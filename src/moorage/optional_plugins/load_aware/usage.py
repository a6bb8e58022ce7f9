"""The predicted use of each node, in columns: what was measured, and estimates for newer pods.

A measurement contains the pods that had started, and warmed up, before its window began. All others on the
node are estimated, so that a burst of pods does not gather on the node that was coolest when it was measured.
A node without usage is one whose measurement contains no pod: its use is the sum of all estimates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage import HypotheticalPods, Nodes, NodeView, ObjectTable, PodColumn, PodInfo, microseconds
from moorage.optional_plugins.load_aware.arguments import RESOURCES, Thresholds
from moorage.optional_plugins.load_aware.estimates import Estimate, Estimator
from moorage.optional_plugins.load_aware.readings import (
    SECOND,
    NodeMetrics,
    Usage,
    UsageReadings,
    known_usage,
)

Amounts = NDArray[np.int64]

_LANES: Final = 2
"""Number of resources: cpu and memory."""
_NO_CUTOFF: Final = -(1 << 62)
"""The cutoff of nodes without usage, in microseconds: every pod started later."""
_NO_LIMIT: Final[int] = np.iinfo(np.int64).max
"""The limit of nodes that are not refused."""


class PodEstimates:
    """The estimate of each pod on a node, in columns."""

    def __init__(self, estimator: Estimator) -> None:
        self.estimator = estimator
        self._cpu = PodColumn(np.int64, lambda info: estimator.of(info)[0])
        self._memory = PodColumn(np.int64, lambda info: estimator.of(info)[1])

    def of(self, nodes: Nodes | NodeView, pods: NDArray[np.intp]) -> tuple[Amounts, Amounts]:
        """The estimates of the pods in some rows, for cpu and memory."""
        table = nodes.snapshot.pods
        return self._cpu.values(table)[pods], self._memory.values(table)[pods]


class UsageColumns:
    """The predicted use of the nodes of a snapshot, which follows it as it moves. Shapes (2, rows).

    use: the predicted use. limits: from which use on a node is refused.
    """

    def __init__(
        self, estimates: PodEstimates, profile: str, warm_up_seconds: float, thresholds: Thresholds
    ) -> None:
        self._estimates = estimates
        self._estimator = estimates.estimator
        self._profile = profile
        self._warm_up = round(warm_up_seconds * SECOND)
        self._thresholds = tuple(getattr(thresholds, name) for name in RESOURCES)
        self._snapshot: object = None
        self._tables: tuple[ObjectTable[UsageReadings], ObjectTable[NodeMetrics]] | None = None
        self._versions = (-1, -1)
        self._seen = -1
        self._measured: Amounts = np.zeros((_LANES, 0), np.int64)
        """What nodes used; 0 for those without usage."""
        self._cutoffs: Amounts = np.zeros(0, np.int64)
        """The last start of a pod whose use the measurement of its node contains, in microseconds."""
        self.use: Amounts = np.zeros((_LANES, 0), np.int64)
        self.limits: Amounts = np.zeros((_LANES, 0), np.int64)
        self.has_any_usage = False

    # Following the snapshot

    def follow(self, nodes: Nodes | NodeView) -> None:
        """Be right for the snapshot of some nodes: look at the rows that were written, or at all."""
        snapshot = nodes.snapshot
        if snapshot is not self._snapshot or self._tables is None:
            self._tables = nodes.objects.of(UsageReadings), nodes.objects.of(NodeMetrics)
            self._versions = (-1, -1)
        readings, metrics = self._tables
        log, versions = snapshot.load_changes, (readings.version, metrics.version)
        if versions == self._versions:
            if log.position == self._seen:
                return
            rows = log.since(self._seen)
        else:
            rows = None
        if rows is None:
            self.measure(nodes, known_usage(nodes.objects, self._profile))
        else:
            for row in rows:
                self._renew(nodes, row)
        self._versions, self._seen = versions, log.position

    def measure(self, nodes: Nodes | NodeView, usage: Usage) -> None:
        """Look at all rows."""
        self._snapshot = snapshot = nodes.snapshot
        found = [usage.get(name) for name in snapshot.names]
        cutoffs = [_NO_CUTOFF if each is None else each.begin - self._warm_up for each in found]
        self._cutoffs = np.array(cutoffs, np.int64)
        self.has_any_usage = any(each is not None for each in found)
        amounts = [(0, 0) if each is None else (each.cpu, each.memory) for each in found]
        self._measured = np.array(amounts, np.int64).reshape(-1, _LANES).T.copy()
        self.use = self._measured.copy()
        node_rows = snapshot.pods.node_rows
        newer = np.flatnonzero(snapshot.pods.started.values > self._cutoffs[node_rows])
        for lane, estimates in enumerate(self._estimates.of(nodes, newer)):
            np.add.at(self.use[lane], node_rows[newer], estimates)
        self.limits = np.array([self._limits(nodes, lane) for lane in range(_LANES)])

    def _limits(self, nodes: Nodes | NodeView, lane: int) -> Amounts:
        """From which use of a resource on each node is refused."""
        threshold, allocatable = self._thresholds[lane], nodes.snapshot.allocatable.of(RESOURCES[lane])
        if threshold is None:
            return np.full(len(allocatable), _NO_LIMIT, np.int64)
        limits = -(-threshold * allocatable // 100)
        return np.where((self._cutoffs != _NO_CUTOFF) & (allocatable > 0), limits, _NO_LIMIT)

    def _renew(self, nodes: Nodes | NodeView, row: int) -> None:
        """Look at one row, where the node or the pods on it have changed."""
        snapshot, cutoff = nodes.snapshot, self._cutoffs.item(row)
        estimate = self._estimated(snapshot.pods_of(row).infos, cutoff)
        allocatable = snapshot.allocatable.by_row[row]
        for lane, threshold in enumerate(self._thresholds):
            self.use[lane, row] = self._measured.item(lane, row) + estimate[lane]
            if threshold is not None and cutoff != _NO_CUTOFF:
                amount = allocatable.get(RESOURCES[lane], 0)
                self.limits[lane, row] = -(-threshold * amount // 100) if amount else _NO_LIMIT

    def _estimated(self, infos: Iterable[PodInfo], cutoff: int) -> Estimate:
        """The estimated use of those pods that a measurement does not contain."""
        cpu = memory = 0
        for info in infos:
            start = info.pod.status.start_time
            if start is None or microseconds(start) > cutoff:
                estimate = self._estimator.of(info)
                cpu += estimate[0]
                memory += estimate[1]
        return cpu, memory

    # What plugins read, after `follow`

    def refused(self, nodes: Nodes) -> NDArray[np.int8]:
        """For each node the sum of 1 if its use of cpu is at the limit, and of 2 for memory."""
        cpu, memory = self.predicted(nodes) >= nodes.pick(self.limits)
        codes: NDArray[np.int8] = cpu.view(np.int8) + 2 * memory.view(np.int8)
        return codes

    def refused_on(self, node: NodeView) -> int:
        """The same for one node."""
        cpu, memory = self.predicted_on(node)
        limits, row = self.limits, node.row
        return (cpu >= limits.item(0, row)) + 2 * (memory >= limits.item(1, row))

    def predicted(self, nodes: Nodes) -> Amounts:
        """The predicted use of nodes, with the changes that are supposed. Shape (2, nodes)."""
        amounts: Amounts = nodes.pick(self.use)
        supposed = nodes.hypothetical_pods
        return amounts if supposed is None else self._supposing(amounts.copy(), nodes, supposed)

    def _supposing(self, amounts: Amounts, nodes: Nodes, supposed: HypotheticalPods) -> Amounts:
        """Count pods that are added, and do not count unmeasured pods that are removed.

        What measured pods use of what was measured is not known.
        """
        removed, rows = supposed.removed_pods, nodes.row_numbers()[supposed.removed_from]
        is_unmeasured = nodes.snapshot.pods.started.values[removed] > self._cutoffs[rows]
        for lane, estimates in enumerate(self._estimates.of(nodes, removed[is_unmeasured])):
            np.subtract.at(amounts[lane], supposed.removed_from[is_unmeasured], estimates)
        for index, info in supposed.added:
            amounts[:, index] += self._estimator.of(info)
        for info in supposed.on_each:
            amounts += np.array(self._estimator.of(info), np.int64)[:, None]
        return amounts

    def predicted_on(self, node: NodeView) -> Estimate:
        """The same for one node."""
        row = node.row
        cpu, memory = self.use.item(0, row), self.use.item(1, row)
        if node.removed:
            gone = self._estimated(node.removed, self._cutoffs.item(row))
            cpu, memory = cpu - gone[0], memory - gone[1]
        for info in node.added:
            estimate = self._estimator.of(info)
            cpu, memory = cpu + estimate[0], memory + estimate[1]
        return cpu, memory
