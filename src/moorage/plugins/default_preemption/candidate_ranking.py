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
    best = candidates
    first = (stats.pdb_violations,) if stats.has_pdb_violations else ()
    for column in (*first, stats.highest_priority, stats.priority_sum, stats.count):
        if len(best) > 1:
            values = column.take(best)
            best = best[values == np.minimum.reduce(values)]
    if len(best) > 1:
        started = stats.earliest_start.take(best)
        best = best[started == np.maximum.reduce(started)]
    return best


def find_candidates(dry_run: DryRun, rows: NDArray[np.intp], enough: int, start: int) -> NDArray[np.intp]:
    """The candidates, from the row at offset `start` on.

    Rows are evaluated until there are enough candidates and one of them has no PDB violations.
    """
    rotated = np.concatenate((rows[start:], rows[:start]))
    stats = dry_run.stats
    found, enough = rotated[:0], max(enough, 1)
    begin, size = 0, max(enough, _MIN_BATCH_ROWS)
    while begin < len(rotated):
        part = rotated[begin : begin + size]
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
