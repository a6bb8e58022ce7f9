"""The pods that are to be expected, learned from the pods on nodes: a function of the cluster as it is.

Pods of a shape are counted, and their number is rounded down to two binary digits (1, 2, 3, 4, 6, 8, ...), so
that few of the pods that come and go change scores. Where there are more shapes than are kept, those that
request most count. Nothing is remembered of pods that are gone: the same cluster gives the same scores, also
after a restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import nsmallest
from typing import Final

from moorage import Handle, Nodes, NodeView, RowReader
from moorage.optional_plugins.gpu_fragmentation.target import Shape, Target

Requests = tuple[tuple[str, int], ...]
"""What a pod requests, by name."""

_MAX_KNOWN: Final = 4096
"""Maximum number of amounts whose order by name is kept; they cannot be freed meanwhile."""


def rounded(count: int) -> int:
    """A number rounded down to its two highest binary digits."""
    low = max(count.bit_length() - 2, 0)
    return count >> low << low


class LearnedTarget:
    """Follows the shapes of the pods on nodes that request a resource."""

    def __init__(self, resource: str, unit: int, max_shapes: int, handle: Handle) -> None:
        self._resource = resource
        self._unit = unit
        self._max_shapes = max_shapes
        self._reader = RowReader()
        self._by_row: dict[int, Counter[Requests]] = {}
        """The shapes on each row that has any."""
        self._counts: Counter[Requests] = Counter()
        self._known: dict[int, tuple[Mapping[str, int], Requests]] = {}
        """What is requested, by the identity of the amounts: pods of a template share theirs."""
        self._target = Target(resource, unit, ())
        shapes = "Number of different shapes of pods that are expected, as learned from the pods on nodes."
        self._shapes = handle.metrics.gauge(
            "moorage_gpu_fragmentation_expected_shapes", shapes, ("profile",)
        ).labels(handle.profile)
        changes = "Number of changes of the pods that are expected: all nodes are scored again after each."
        self._changes = handle.metrics.counter(
            "moorage_gpu_fragmentation_expectation_changes_total", changes, ("profile",)
        ).labels(handle.profile)

    def of(self, nodes: Nodes) -> Target:
        """The shapes of all pods on nodes; the same object as long as they stay the same."""
        snapshot = nodes.snapshot
        rows = self._reader.new_rows(snapshot, snapshot.load_changes)
        if rows is None:
            self._by_row, self._counts = {}, Counter()
            rows = list(range(len(snapshot)))
            self._count(nodes, rows)
            self._renew()
        elif rows and self._count(nodes, rows):
            self._renew()
        return self._target

    def _count(self, nodes: Nodes, rows: Iterable[int]) -> bool:
        """Count the shapes on some rows again; returns whether a rounded number has changed."""
        snapshot, changes = nodes.snapshot, Counter[Requests]()
        requested = snapshot.requested.by_row
        for row in rows:
            before = self._by_row.pop(row, None)
            if before is not None:
                changes.subtract(before)
            if requested[row].get(self._resource):
                now = self._by_row[row] = self._shapes_on(NodeView(snapshot, row))
                changes.update(now)
        return True in [self._add(shape, change) for shape, change in changes.items() if change]

    def _add(self, shape: Requests, change: int) -> bool:
        before = self._counts[shape]
        count = before + change
        if count:
            self._counts[shape] = count
        else:
            del self._counts[shape]
        return rounded(count) != rounded(before)

    def _shapes_on(self, node: NodeView) -> Counter[Requests]:
        amounts = [info.load.amounts for info in node.pods]
        return Counter([self._requests(each) for each in amounts if each.get(self._resource)])

    def _requests(self, amounts: Mapping[str, int]) -> Requests:
        known = self._known.get(id(amounts))
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            requests = tuple(sorted((name, amount) for name, amount in amounts.items() if amount))
            known = self._known[id(amounts)] = (amounts, requests)
        return known[1]

    def _renew(self) -> None:
        """Make the target of the shapes that request most; of equal ones, the first in order."""
        shapes = [Shape(requests, rounded(count)) for requests, count in self._counts.items()]
        most = tuple(nsmallest(self._max_shapes, shapes, key=self._rank))
        if most != self._target.shapes:
            self._target = Target(self._resource, self._unit, most)
            self._shapes.set(len(most))
            self._changes.inc()

    def _rank(self, shape: Shape) -> tuple[int, Requests]:
        return -shape.number * dict(shape.requests)[self._resource], shape.requests
