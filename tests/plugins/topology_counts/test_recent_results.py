"""Results by row are bounded in total, and freed with the equivalence class that they are of."""

from __future__ import annotations

import weakref

import pytest

from moorage.plugins.topology_counts import incremental
from moorage.plugins.topology_counts.incremental import RecentResults


class Results:
    def __init__(self) -> None:
        self.releases = 0

    def release(self) -> None:
        self.releases += 1


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental, "_MAX_RESULT_CELLS", 100)
    monkeypatch.setattr(incremental, "_MIN_RESULTS", 1)


def test_the_least_recently_used_are_released() -> None:
    recent, first, second, third = RecentResults(), Results(), Results(), Results()
    recent.use(first, 40)
    recent.use(second, 40)
    recent.use(first, 40)
    recent.use(third, 40)
    assert [each.releases for each in (first, second, third)] == [0, 1, 0]


def test_results_that_grow_count_once() -> None:
    recent, first, second = RecentResults(), Results(), Results()
    recent.use(first, 20)
    recent.use(second, 20)
    recent.use(second, 50)
    recent.use(second, 80)
    assert (first.releases, second.releases) == (0, 0)
    recent.use(second, 81)
    assert (first.releases, second.releases) == (1, 0)


def test_results_are_freed_with_their_class() -> None:
    recent, last = RecentResults(), Results()
    freed = []
    for _ in range(5):
        results = Results()
        freed.append(weakref.ref(results))
        recent.use(results, 20)
    del results
    recent.use(last, 20)
    assert [each() for each in freed] == [None] * 5


def test_what_was_freed_does_not_count() -> None:
    recent, kept = RecentResults(), Results()
    recent.use(kept, 30)
    for _ in range(10):
        recent.use(Results(), 60)
    assert kept.releases == 0
