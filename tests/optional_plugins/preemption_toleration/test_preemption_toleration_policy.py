"""The annotations of PriorityClasses: how they are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.optional_plugins.preemption_toleration.policy import (
    MINIMUM_PREEMPTABLE_PRIORITY,
    TOLERATION_SECONDS,
    Policy,
    PriorityClass,
    policy_of,
)
from tests.optional_plugins.preemption_toleration.preempting import priority_class

READ = {
    "nothing": (None, None, Policy(101, 0)),
    "both": ("10000", "3600", Policy(10000, 3600)),
    "without a time there is no toleration": ("10000", None, Policy(10000, 0)),
    "without a priority: the next above its own": (None, "3600", Policy(101, 3600)),
    "for ever": ("10000", "-1", Policy(10000, -1)),
    "signs": ("-5", "+7", Policy(-5, 7)),
    "leading zeros": ("007", "0" * 30 + "9", Policy(7, 9)),
    "the largest": (str(2**31 - 1), str(2**63 - 1), Policy(2**31 - 1, 2**63 - 1)),
    "the smallest": (str(-(2**31)), str(-(2**63)), Policy(-(2**31), -(2**63))),
}


@pytest.mark.parametrize(("minimum", "seconds", "policy"), READ.values(), ids=READ.keys())
def test_a_policy_is_read(minimum: str | None, seconds: str | None, policy: Policy) -> None:
    assert policy_of(of(minimum, seconds)) == policy


NOT_READ = ["", "a", " 1", "1 ", "1\n", "1.0", "1e3", "0x10", "1_000", "--1", "+", "٣", "9" * 5000]


@pytest.mark.parametrize("text", NOT_READ)
@pytest.mark.parametrize("annotation", [MINIMUM_PREEMPTABLE_PRIORITY, TOLERATION_SECONDS])
def test_anything_else_is_an_error(annotation: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{annotation}: '.*' is not a whole number from -"):
        policy_of(of(text, "10") if annotation is MINIMUM_PREEMPTABLE_PRIORITY else of("10", text))


@pytest.mark.parametrize(
    ("minimum", "seconds"), [(str(2**31), "0"), (str(-(2**31) - 1), "0"), ("0", str(2**63))]
)
def test_numbers_out_of_range_are_errors(minimum: str, seconds: str) -> None:
    with pytest.raises(ValueError, match="is not a whole number from"):
        policy_of(of(minimum, seconds))


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
def test_every_number_in_range_is_read(minimum: int, seconds: int) -> None:
    assert policy_of(of(str(minimum), str(seconds))) == (minimum, seconds)


def of(minimum: str | None, seconds: str | None) -> PriorityClass:
    return priority_class("low", 100, minimum, seconds)
