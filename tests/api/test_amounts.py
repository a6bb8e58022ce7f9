"""Amounts keep their style through sums and are written in canonical form."""

from __future__ import annotations

import pytest

from moorage.api.amounts import ZERO, add_to, amount_of, amounts_of, raise_to, whole


@pytest.mark.parametrize(
    "text", ["0", "1", "100m", "1500", "1k", "1500m", "2Gi", "1536Mi", "1023", "1025", "5e3", "12E", "100n"]
)
def test_canonical_text_comes_back(text: str) -> None:
    assert str(amount_of(text)) == text


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        ("1Gi", "512Mi", "1536Mi"),
        ("512Mi", "512Mi", "1Gi"),
        ("600m", "400m", "1"),
        ("1000", "24", "1024"),
        ("1Ki", "1k", "2024"),
        ("1k", "1Ki", "2024"),
        ("1M", "1Mi", "2048576"),
        ("0", "1Gi", "1Gi"),
        ("1Gi", "100m", "1073741824100m"),
        ("500", "1e3", "1500"),
        ("1e3", "1k", "2e3"),
    ],
)
def test_a_sum_is_written_like_its_first_part(first: str, second: str, total: str) -> None:
    assert str(amount_of(first).plus(amount_of(second))) == total


def test_nothing_is_less_than_nothing() -> None:
    assert str(amount_of("1").minus(amount_of("3"))) == "0"
    assert str(amount_of("3Gi").minus(amount_of("1Gi"))) == "2Gi"


def test_lists_are_added_and_raised_by_name() -> None:
    total = amounts_of({"cpu": "1", "memory": "1Gi"})
    add_to(total, amounts_of({"cpu": "500m", "pods": "1"}))
    raise_to(total, amounts_of({"memory": "512Mi", "cpu": "2", "x": "1"}))
    assert {name: str(amount) for name, amount in total.items()} == {
        "cpu": "2",
        "memory": "1Gi",
        "pods": "1",
        "x": "1",
    }
    assert whole(0) == ZERO
