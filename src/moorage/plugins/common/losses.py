"""What making room for a pod costs on each node, and where it hurts least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.common.victims import Victims

_PRIORITY_OFFSET: Final = 1 << 31
"""Makes every priority positive, so that more victims never sum up to less."""
_FIRST_PART: Final = 128
"""So many nodes are tried out at once, at least."""


class Losses:
    """The victims on each row of a snapshot, in figures. A row without victims is no candidate."""

    __slots__ = ("broken", "count", "earliest", "highest", "total")

    def __init__(self, rows: int) -> None:
        self.count = np.zeros(rows, np.int32)
        """How many pods have to go."""
        self.broken = np.zeros(rows, np.int32)
        """How many of them break a disruption budget."""
        self.highest = np.zeros(rows, np.int64)
        """The highest priority among them."""
        self.total = np.zeros(rows, np.int64)
        """The sum of their priorities, each made positive."""
        self.earliest = np.zeros(rows, np.int64)
        """When the first of those of the highest priority started, in microseconds."""

    def put_all(self, rows: NDArray[np.intp], victims: Victims, gone: NDArray[np.bool_]) -> None:
        """Take down which pods have to be gone from the nodes of `victims`, which are in these rows."""
        size = len(rows)
        place, priority, started = victims.place[gone], victims.priority[gone], victims.started[gone]
        highest = np.full(size, np.iinfo(np.int64).min)
        np.maximum.at(highest, place, priority)
        total = np.zeros(size, np.int64)
        np.add.at(total, place, priority + _PRIORITY_OFFSET)
        most_important = priority == highest[place]
        earliest = np.full(size, np.iinfo(np.int64).max)
        np.minimum.at(earliest, place[most_important], started[most_important])
        self.count[rows] = np.bincount(place, minlength=size)
        self.broken[rows] = np.bincount(place[victims.violates[gone]], minlength=size)
        self.highest[rows] = highest
        self.total[rows] = total
        self.earliest[rows] = earliest

    def put(self, row: int, priorities: Sequence[int], started: Sequence[int], broken: int) -> None:
        """Take down the pods that have to be gone from one node, the most important first."""
        self.count[row] = len(priorities)
        if priorities:
            self.broken[row] = broken
            self.highest[row] = priorities[0]
            self.total[row] = sum(priorities) + len(priorities) * _PRIORITY_OFFSET
            self.earliest[row] = min(started[: priorities.count(priorities[0])])


DryRun = Callable[[Nodes, Diagnosis], tuple[Victims, NDArray[np.bool_]]]
"""The pods of lower priority on nodes, and which of them must go; why that does not help is taken down."""


class Trial(Protocol):
    """Finds out who would have to go from which node."""

    losses: Losses

    def look_at(self, rows: NDArray[np.intp]) -> None:
        """See to it that the losses on some rows are known."""

    def victims_on(self, row: int) -> tuple[Pod, ...]:
        """Who has to go from a node that was looked at, the most important first."""

    def explain(self, nodes: Nodes, found: Diagnosis) -> None:
        """Take down why evicting does not help on nodes, all of which were looked at."""


class FreshTrial:
    """Finds all out anew, in columns."""

    def __init__(self, snapshot: Snapshot, dry_run: DryRun) -> None:
        self.losses = Losses(len(snapshot))
        self._snapshot = snapshot
        self._dry_run = dry_run
        self._found = Diagnosis(len(snapshot))
        self._parts: list[tuple[Victims, NDArray[np.bool_]]] = []

    def look_at(self, rows: NDArray[np.intp]) -> None:
        """See to it that the losses on some rows, which are new, are known."""
        victims, gone = self._dry_run(Nodes(self._snapshot, rows), self._found)
        self.losses.put_all(rows, victims, gone)
        self._parts.append((victims, gone))

    def victims_on(self, row: int) -> tuple[Pod, ...]:
        """Who has to go from a node that was looked at, the most important first."""
        parts = (victims.gone_from(row, gone) for victims, gone in self._parts)
        return next(pods for pods in parts if pods is not None)

    def explain(self, nodes: Nodes, found: Diagnosis) -> None:
        """Take down why evicting does not help on nodes, all of which were looked at."""
        codes = (nodes.pick(self._found.codes) + 1).astype(np.int16)
        found.refuse_cached(nodes, codes, self._found.refusals)


def least_harmful(losses: Losses, candidates: NDArray[np.intp]) -> NDArray[np.intp]:
    """Of some rows, those where making room hurts least, the preferred one first.

    Compared in turn: budgets broken, the highest priority lost, the sum of priorities, the number of pods,
    and how late the most important victims started.
    """
    best = candidates
    for column in (losses.broken, losses.highest, losses.total, losses.count):
        if len(best) > 1:
            values = column[best]
            best = best[values == values.min()]
    if len(best) > 1:
        started = losses.earliest[best]
        best = best[started == started.max()]
    return best


def first_candidates(trial: Trial, rows: NDArray[np.intp], enough: int, start: int) -> NDArray[np.intp]:
    """Rows where making room is possible, from a certain one on; none if it is so on none.

    Rows are looked at until there are enough candidates and one of them breaks no budget.
    """
    rotated = np.concatenate((rows[start:], rows[:start]))
    losses = trial.losses
    found = rotated[:0]
    begin, size = 0, max(enough, _FIRST_PART)
    while begin < len(rotated):
        part = rotated[begin : begin + size]
        trial.look_at(part)
        found = np.concatenate((found, part[losses.count[part] > 0]))
        if len(found) >= enough:
            harmless = np.flatnonzero(losses.broken[found] == 0)
            if len(harmless):
                return found[: max(enough, int(harmless[0]) + 1)]
        begin, size = begin + size, 2 * size
    return found
