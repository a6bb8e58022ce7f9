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
    for column in (stats.pdb_violations, stats.highest_priority, stats.priority_sum, stats.count):
        if len(best) > 1:
            values = column[best]
            best = best[values == values.min()]
    if len(best) > 1:
        started = stats.earliest_start[best]
        best = best[started == started.max()]
    return best


def find_candidates(dry_run: DryRun, rows: NDArray[np.intp], enough: int, start: int) -> NDArray[np.intp]:
    """The candidates, from the row at offset `start` on.

    Rows are evaluated until there are enough candidates and one of them has no PDB violations.
    """
    rotated = np.concatenate((rows[start:], rows[:start]))
    stats = dry_run.stats
    found = rotated[:0]
    begin, size = 0, max(enough, _MIN_BATCH_ROWS)
    while begin < len(rotated):
        part = rotated[begin : begin + size]
        dry_run.evaluate(part)
        found = np.concatenate((found, part[stats.count[part] > 0]))
        if len(found) >= enough:
            without_violations = np.flatnonzero(stats.pdb_violations[found] == 0)
            if len(without_violations):
                return found[: max(enough, int(without_violations[0]) + 1)]
        begin, size = begin + size, 2 * size
    return found
