"""What a diagnosis says of all nodes together is what it says of each of them, added up."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.cluster.cache import Cache
from moorage.framework.interface.diagnosis import Diagnosis, Refusal
from moorage.framework.interface.filter_result import FilterResult, Reason
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Code, unresolvable
from tests.builders import make_node

NODES = Nodes(Cache(make_node(f"n{index}") for index in range(6)).snapshot())
REASONS = (
    Reason(("node(s) had untolerated taint(s)",), Code.UNRESOLVABLE),
    Reason(("Insufficient cpu", "Insufficient memory"), Code.UNSCHEDULABLE),
    Reason(("Insufficient cpu", "Insufficient cpu"), Code.UNSCHEDULABLE),
)
LEFT_OUT = unresolvable("node(s) didn't match Pod's node affinity/selector")

codes = st.lists(st.integers(0, 3), min_size=6, max_size=6)
some_rows = st.none() | st.sets(st.integers(0, 5)).map(sorted)


@given(
    cached=codes,
    rows=some_rows,
    later=codes,
    is_left_out=st.booleans(),
    asks_early=st.booleans(),
    is_counted=st.booleans(),
)
def test_counts_by_reason_are_those_of_the_nodes(
    cached: list[int],
    rows: list[int] | None,
    later: list[int],
    is_left_out: bool,
    asks_early: bool,
    is_counted: bool,
) -> None:
    view = NODES if rows is None else NODES.at(np.array(rows, np.intp))
    diagnosis = Diagnosis(len(NODES), left_out=LEFT_OUT if is_left_out else None)
    refusals = [Refusal(f"plugin {index}", reason) for index, reason in enumerate(REASONS)]
    cached = cached[: len(view)]
    counts = [cached.count(code) for code in range(4)] if is_counted else None
    diagnosis.refuse_cached(view, np.array(cached, np.int16), refusals, counts)
    assert diagnosis.refused_count == sum(map(bool, cached))
    if asks_early:
        assert len(diagnosis.codes) == len(NODES)
    left = [row for row in range(6) if diagnosis.of(row) is None]
    if left:
        result = FilterResult(np.array(later, np.int16)[: len(left)], REASONS)
        diagnosis.refuse("last", NODES.at(np.array(left, np.intp)), result)
    expected: Counter[str] = Counter()
    for row in range(6):
        refusal = diagnosis.of(row)
        if refusal is not None:
            expected.update(set(refusal.reason.texts))
        elif is_left_out:
            expected.update(LEFT_OUT.reasons)
    assert diagnosis.tally() == expected
    found = [each for row in range(6) if (each := diagnosis.of(row)) is not None]
    assert diagnosis.refused_count == len(found)
    assert {each.plugin for each in found} <= diagnosis.plugins


def test_a_pod_that_no_filter_rejected_has_the_reason_of_the_nodes_left_out() -> None:
    assert Diagnosis(3).message() == "0/3 nodes are available:"
    assert Diagnosis(3, left_out=LEFT_OUT).message() == f"0/3 nodes are available: 3 {LEFT_OUT.message}."
