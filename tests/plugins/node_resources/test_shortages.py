"""Every combination of reasons that occurs has its own code."""

from __future__ import annotations

import numpy as np
import pytest

from moorage.framework.interface.filter_result import ALL, Reason
from moorage.framework.interface.status import Code
from moorage.plugins.node_resources.shortages import Shortages, combined


@pytest.mark.parametrize("count", [1, 2, 5, 7, 8, 20, 100])
def test_masks_are_combined(count: int) -> None:
    random = np.random.default_rng(count)
    masks = [random.random(50) < random.random() / 2 for _ in range(count)]
    codes, combinations = combined(masks)
    expected = [tuple(index for index in range(count) if masks[index][node]) for node in range(50)]
    assert [combinations[code] for code in codes.tolist()] == expected
    assert combinations[0] == ()
    assert len(combinations) == len({(), *expected})


def test_no_shortage_passes_all_nodes() -> None:
    assert Shortages().result() is ALL


def test_nodes_that_are_too_small_are_unresolvable() -> None:
    shortages = Shortages()
    shortages.add(np.array([False, True, True, False]), "a")
    shortages.add(np.array([False, False, True, True]), "b", np.array([False, False, True, False]))
    result = shortages.result()
    assert result.codes is not None
    reasons = [result.reasons[code - 1] if code else None for code in result.codes.tolist()]
    assert reasons == [None, Reason(("a",)), Reason(("a", "b"), Code.UNRESOLVABLE), Reason(("b",))]
