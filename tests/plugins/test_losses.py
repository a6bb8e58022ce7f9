"""Which nodes are looked at for victims, and which of them is taken."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.common import losses
from moorage.plugins.common.losses import Losses, first_candidates, least_harmful


class Recorded:
    """Knows all losses beforehand, and takes down which rows are looked at."""

    def __init__(self, priorities: list[int], broken: dict[int, int]) -> None:
        self.losses = Losses(len(priorities))
        self.looked_at: list[int] = []
        for row, priority in enumerate(priorities):
            victims = [priority] if priority >= 0 else []
            self.losses.put(row, victims, [0] * len(victims), broken.get(row, 0))

    def look_at(self, rows: NDArray[np.intp]) -> None:
        self.looked_at += rows.tolist()

    def victims_on(self, row: int) -> tuple[Pod, ...]:
        raise NotImplementedError

    def explain(self, nodes: Nodes, found: Diagnosis) -> None:
        raise NotImplementedError


NONE = -1
"""In place of a victim's priority: nobody goes, and so the node is no candidate."""


@pytest.mark.parametrize(
    ("priorities", "broken", "enough", "best", "looked_at"),
    [
        pytest.param([3, 2, 1, 0], {}, 4, [3], 4, id="all are compared"),
        pytest.param([3, 2, 1, 0], {}, 2, [1], 2, id="two are enough"),
        pytest.param([3, NONE, 1, 0, 0, 0, 0], {}, 2, [2], 6, id="who has no victims does not count"),
        pytest.param([3, 2, 1, 0, 0, 0], {0: 1, 1: 1}, 2, [2], 6, id="one must break no budget"),
        pytest.param([3, 2, 1], {0: 2, 1: 1, 2: 1}, 2, [2], 3, id="unless all break one"),
        pytest.param([2, 1, 1, 2], {}, 4, [1, 2], 4, id="equals, the first first"),
        pytest.param([NONE, NONE], {}, 2, [], 2, id="no candidate"),
        pytest.param([], {}, 0, [], 0, id="no node"),
    ],
)
def test_which_nodes_are_looked_at_and_which_is_taken(
    priorities: list[int],
    broken: dict[int, int],
    enough: int,
    best: list[int],
    looked_at: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(losses, "_FIRST_PART", 2)
    trial = Recorded(priorities, broken)
    candidates = first_candidates(trial, np.arange(len(priorities)), enough, 0)
    assert least_harmful(trial.losses, candidates).tolist() == best
    assert trial.looked_at == list(range(looked_at))


def test_where_it_begins() -> None:
    trial = Recorded([0] * 5, {})
    chosen = [first_candidates(trial, np.arange(5), 1, start).tolist() for start in range(5)]
    assert chosen == [[0], [1], [2], [3], [4]]
