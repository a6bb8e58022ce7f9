"""Exponential backoff: what the queue, the client and reviews of access share."""

from __future__ import annotations

import math
from random import Random

import pytest

from moorage.backoff import Backoff, backoff_seconds

DELAYS: dict[str, tuple[dict[str, float], list[float]]] = {
    "doubled up to a maximum": ({"initial_seconds": 1.0, "max_seconds": 10.0}, [1, 2, 4, 8, 10, 10]),
    "by another factor, without a maximum": ({"initial_seconds": 0.5, "factor": 1.5}, [0.5, 0.75, 1.125]),
}


@pytest.mark.parametrize(("options", "delays"), DELAYS.values(), ids=DELAYS.keys())
def test_delays_grow(options: dict[str, float], delays: list[float]) -> None:
    assert [backoff_seconds(failures, **options) for failures in range(1, len(delays) + 1)] == delays


def test_any_number_of_failures_is_possible() -> None:
    assert backoff_seconds(100_000, 1.0, 10.0) == 10.0
    assert math.isfinite(backoff_seconds(100_000, 1.0))


def test_jitter_only_lengthens_a_delay_and_reset_starts_again() -> None:
    backoff = Backoff(1.0, 4.0, Random(1), jitter=0.5)
    for _ in range(2):
        for delay in (1.0, 2.0, 4.0, 4.0):
            assert delay <= backoff.next_seconds() < 1.5 * delay
        backoff.reset()
