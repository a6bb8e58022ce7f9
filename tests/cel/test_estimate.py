"""The maximum costs of expressions, compared with the estimates of Kubernetes v1.36.4 in `facts.json`."""

from __future__ import annotations

from moorage.cel.program import compile_selector
from moorage.cel.ranges import MAX, ONE, UNKNOWN, Range, fixed
from tests.cel.test_costs import NOT_SUPPORTED, ROWS


def test_estimates_are_kubernetes() -> None:
    assert len(ROWS) > 200
    for row in ROWS:
        if row["estimate"] is not None and row["expression"] not in NOT_SUPPORTED:
            assert compile_selector(row["expression"]).max_cost == row["estimate"], row


def test_ranges_do_not_grow_beyond_64_bits() -> None:
    assert UNKNOWN.plus(ONE) == Range(1, MAX)
    assert UNKNOWN.times(fixed(2)) == UNKNOWN.by(1.5) == UNKNOWN


def test_a_factor_rounds_up() -> None:
    assert Range(1, 11).by(0.1) == Range(1, 2)
