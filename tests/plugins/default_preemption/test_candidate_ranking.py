"""Which nodes are looked at for victims, and which of them is taken."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.default_preemption import candidate_ranking
from moorage.plugins.default_preemption.candidate_ranking import find_candidates, pick_one_node
from moorage.plugins.default_preemption.victims import VictimStats


class Recorded:
    """Knows all losses beforehand, and takes down which rows are looked at."""

    def __init__(self, priorities: list[int], pdb_violations: dict[int, int]) -> None:
        self.stats = VictimStats(len(priorities))
        self.evaluated: list[int] = []
        for row, priority in enumerate(priorities):
            victims = [priority] if priority >= 0 else []
            self.stats.put(row, victims, [0] * len(victims), pdb_violations.get(row, 0))

    def evaluate(self, rows: NDArray[np.intp]) -> None:
        self.evaluated += rows.tolist()

    def victims_on(self, row: int) -> tuple[Pod, ...]:
        raise NotImplementedError

    def explain(self, nodes: Nodes, found: Diagnosis) -> None:
        raise NotImplementedError


NONE = -1
"""In place of a victim's priority: nobody goes, and so the node is no candidate."""


@pytest.mark.parametrize(
    ("priorities", "pdb_violations", "enough", "best", "evaluated"),
    [
        pytest.param([3, 2, 1, 0], {}, 4, [3], 4, id="all are compared"),
        pytest.param([3, 2, 1, 0], {}, 2, [1], 2, id="two are enough"),
        pytest.param([3, NONE, 1, 0, 0, 0, 0], {}, 2, [2], 6, id="who has no victims does not count"),
        pytest.param([3, 2, 1, 0, 0, 0], {0: 1, 1: 1}, 2, [2], 6, id="one must break no budget"),
        pytest.param([3, 2, 1], {0: 2, 1: 1, 2: 1}, 2, [2], 3, id="unless all break one"),
        pytest.param([2, 1, 1, 2], {}, 4, [1, 2], 4, id="equals, the first first"),
        pytest.param([NONE, NONE], {}, 2, [], 2, id="no candidate"),
        pytest.param([], {}, 0, [], 0, id="no node"),
        pytest.param([NONE, NONE, 1, 0], {}, 0, [2], 4, id="one is needed in any case"),
    ],
)
def test_which_nodes_are_looked_at_and_which_is_taken(
    priorities: list[int],
    pdb_violations: dict[int, int],
    enough: int,
    best: list[int],
    evaluated: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(candidate_ranking, "_MIN_BATCH_ROWS", 2)
    dry_run = Recorded(priorities, pdb_violations)
    candidates = find_candidates(dry_run, np.arange(len(priorities)), enough, 0)
    assert pick_one_node(dry_run.stats, candidates).tolist() == best
    assert dry_run.evaluated == list(range(evaluated))


def test_where_it_begins() -> None:
    dry_run = Recorded([0] * 5, {})
    chosen = [find_candidates(dry_run, np.arange(5), 1, start).tolist() for start in range(5)]
    assert chosen == [[0], [1], [2], [3], [4]]


STARTS = st.integers(0, 2)
VICTIMS = st.lists(st.integers(-1, 2), min_size=1, max_size=3).map(lambda each: sorted(each, reverse=True))


@given(nodes=st.lists(st.tuples(VICTIMS, STARTS, st.integers(0, 1)), min_size=1, max_size=8))
def test_the_best_candidates_are_those_that_a_plain_comparison_finds(
    nodes: list[tuple[list[int], int, int]],
) -> None:
    stats = VictimStats(len(nodes))
    ranks = []
    for row, (priorities, start, pdb_violations) in enumerate(nodes):
        stats.put(row, priorities, [start] * len(priorities), pdb_violations)
        total = sum(priority + (1 << 31) for priority in priorities)
        ranks.append((pdb_violations, priorities[0], total, len(priorities), -start))
    best = [row for row, rank in enumerate(ranks) if rank == min(ranks)]
    assert pick_one_node(stats, np.arange(len(nodes))).tolist() == best
