"""Candidates for preemption: which nodes are evaluated, and which is picked."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.plugins.default_preemption.dry_run import DryRun
from moorage.plugins.default_preemption.victims import VictimStats

_MIN_BATCH_ROWS: Final = 128
"""Minimum number of nodes that are evaluated at once."""


def pick_one_node(stats: VictimStats, candidates: NDArray[np.intp]) -> NDArray[np.intp]:
    """Of some rows, the best candidates, in order.

    Compared in turn: fewest PDB violations, lowest highest priority, lowest sum of priorities, fewest
    victims, and latest start time of the most important victims.
    """
    if len(candidates) < 2:
        return candidates
    ranks = stats.ranks.take(candidates, axis=1)
    best = _equal_to(ranks, np.minimum.reduce(ranks, axis=1, keepdims=True))
    if not len(best):  # None is the best in all respects.
        first = np.lexsort(ranks[::-1])[0]
        best = _equal_to(ranks, ranks[:, first, None])
    return candidates[best]


def _equal_to(ranks: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.intp]:
    """The candidates with these ranks; the methods `all` and `any` of arrays take longer than the rest."""
    is_equal: NDArray[np.bool_] = np.logical_and.reduce(ranks == wanted, axis=0)
    return is_equal.nonzero()[0]


def find_candidates(dry_run: DryRun, rows: NDArray[np.intp], enough: int, start: int) -> NDArray[np.intp]:
    """The candidates, from the row at offset `start` on.

    Rows are evaluated until there are enough candidates and one of them has no PDB violations.
    """
    stats = dry_run.stats
    found, enough = rows[:0], max(enough, 1)
    begin, size = 0, max(enough, _MIN_BATCH_ROWS)
    while begin < len(rows):
        part = _rotated(rows, start, begin, min(begin + size, len(rows)))
        dry_run.evaluate(part)
        candidates = part[stats.count.take(part) > 0]
        found = np.concatenate((found, candidates)) if len(found) else candidates
        if len(found) >= enough:
            if not stats.has_pdb_violations:
                return found[:enough]
            without_violations = np.flatnonzero(stats.pdb_violations.take(found) == 0)
            if len(without_violations):
                return found[: max(enough, int(without_violations[0]) + 1)]
        begin, size = begin + size, 2 * size
    return found


def _rotated(rows: NDArray[np.intp], start: int, begin: int, end: int) -> NDArray[np.intp]:
    """The part from `begin` to `end` of rows that are rotated to begin at offset `start`."""
    begin, end, size = start + begin, start + end, len(rows)
    if end <= size:
        return rows[begin:end]
    if begin >= size:
        return rows[begin - size : end - size]
    return np.concatenate((rows[begin:], rows[: end - size]))
