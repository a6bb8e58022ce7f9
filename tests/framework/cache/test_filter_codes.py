"""Filter results that equivalence classes share, until one of them has results of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cluster.cache import Cache
from moorage.engine.engine import Engine
from moorage.framework.cache import filter_codes
from moorage.framework.cache.filter_codes import FilterCodes
from moorage.framework.interface.extension_points import is_uniform, uniform_scores
from moorage.framework.interface.filter_result import ALL, Reason, refuse_where
from tests.builders import make_framework, make_node, make_pod
from tests.strategies import one_of

TAINTS = ["gpu=x:NoSchedule"]


def codes_of(*refused: bool) -> FilterCodes:
    codes = FilterCodes(len(refused))
    codes.add("Taints", refuse_where(np.array(refused), "tainted"))
    return codes


def test_the_first_rejection_of_a_node_counts() -> None:
    codes = codes_of(True, False, False)
    codes.add("Ports", ALL)
    codes.add("Fit", refuse_where(np.array([True, True, False]), "full"))
    assert [None if not code else codes.refusals[code - 1].plugin for code in codes.codes] == [
        "Taints",
        "Fit",
        None,
    ]
    passing = codes.passing()
    assert passing is not None
    assert passing.tolist() == [2]


def test_a_write_to_a_copy_or_after_lending_changes_nothing_elsewhere() -> None:
    shared = codes_of(True, False, False)
    one, other = shared.copy(), shared.copy()
    assert one.codes is shared.codes
    one.write(1, one.code("Fit", Reason(("full",))))
    lent = one.lend()
    one.write(2, 1)
    assert shared.codes.tolist() == other.codes.tolist() == [1, 0, 0]
    assert len(shared.refusals) == len(other.refusals) == 1
    assert lent.tolist() == [1, 2, 0]
    assert one.codes.tolist() == [1, 2, 1]
    shared.write(0, 0)
    assert shared.passing() is None
    assert other.codes.tolist() == [1, 0, 0]


def test_rows_that_pass_stay_known_where_a_node_is_rejected_for_another_reason() -> None:
    codes = codes_of(True, False, False)
    passing = codes.passing()
    codes.write_row(0, codes.code("Fit", Reason(("full",))))
    assert codes.passing() is passing
    codes.write_row(1, 2)
    now = codes.passing()
    assert now is not None
    assert now.tolist() == [2]
    codes.write_row(0, 0)
    now = codes.passing()
    assert now is not None
    assert now.tolist() == [0, 2]


@given(
    start=st.lists(st.booleans(), min_size=4, max_size=4),
    steps=st.lists(st.tuples(one_of("row", "rows", "filter", "copy"), st.integers(0, 3), st.integers(0, 3))),
)
def test_counts_are_those_of_the_codes_whatever_was_written(
    start: list[bool], steps: list[tuple[str, int, int]]
) -> None:
    codes = codes_of(*start)
    for number, (step, row, code) in enumerate(steps):
        if step == "row":
            codes.write_row(row, code)
        elif step == "rows":
            codes.write(np.array([row, 0]), code)
        elif step == "filter":
            codes.add(f"filter {number}", refuse_where(np.arange(4) == row, "no"))
        else:
            codes = codes.copy()
        counted = codes.counts()
        assert [counted[each] if each < len(counted) else 0 for each in range(20)] == [
            codes.codes.tolist().count(each) for each in range(20)
        ]
        counted[0] = -1  # It is the caller's.


def test_classes_begin_with_the_codes_of_filters_that_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[str] = []
    add = FilterCodes.add

    def counting(self: FilterCodes, plugin: str, result: Any) -> None:
        added.append(plugin)
        add(self, plugin, result)

    monkeypatch.setattr(FilterCodes, "add", counting)
    cache = Cache([make_node("a", taints=TAINTS), make_node("b"), make_node("c")])
    framework, engine = make_framework(), Engine()

    def decide(number: int) -> list[str]:
        added.clear()
        pod = make_pod("p", labels={"app": str(number)}, requests={"cpu": f"{number + 1}m"})
        decision = engine.decide(framework, pod, cache.snapshot())
        assert decision.feasible.names == ["b", "c"]
        return list(added)

    assert decide(0) == ["NodeName", "NodeUnschedulable", "TaintToleration", "NodeResourcesFit"]
    assert decide(1) == ["NodeResourcesFit"]
    added.clear()
    other = make_pod("p", node_selector={"disk": "none"})
    engine.decide(framework, other, cache.snapshot())
    assert added == ["NodeAffinity"], "the codes of the filters before it are known"
    cache.put_node(make_node("b", labels={"changed": "yes"}))
    assert decide(2) == ["NodeName", "NodeUnschedulable", "TaintToleration", "NodeResourcesFit"]


def test_shared_codes_are_bounded_whatever_tolerations_users_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_codes, "_MAX_ROWS", 16)
    cache = Cache([make_node("a", taints=TAINTS), make_node("b")])
    framework, engine = make_framework(), Engine()
    for number in range(50):
        pod = make_pod("p", tolerations=[{"key": f"k{number}", "operator": "Exists"}])
        engine.decide(framework, pod, cache.snapshot())
    assert len(framework._result_caches._shared_codes._known) == 8


def test_uniform_scores_are_stored_once_and_cannot_be_written() -> None:
    scores = uniform_scores(7, 1000)
    assert uniform_scores(7, 1000) is scores
    assert scores.tolist() == [7] * 1000
    assert is_uniform(scores)
    assert not is_uniform(np.full(1000, 7))
    with pytest.raises(ValueError, match="read-only"):
        scores[0] = 1
