"""Checks of the data directory: a small part of each holds, and deliberate bugs are found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from moorage.http.api_error import ApiError
from moorage_cluster.apiserver import journal
from moorage_cluster.apiserver.journal import SqliteJournal
from moorage_cluster.apiserver.store import Store, Stored
from moorage_cluster.chaos.durability import campaign, writes
from moorage_cluster.chaos.durability.campaign import CHECKS, Scale, do, run_campaign, tasks
from moorage_cluster.chaos.durability.report import Result

SMALL = Scale(writes=24, big_objects=2, writes_with_errors=8, damaged=60, killed=2, served=1)


def result_of(check: str, scale: Scale = SMALL) -> Result:
    result = Result(check)
    for part in run_campaign(list(tasks([check], 0, 1, scale)), 1):
        result.merge(part)
    return result


OUTCOMES = {
    "kills": {"all there", "recovery repeated", "server starts"},
    "power": {"all there", "last writes missing"},
    "power-sync": {"all there"},
    "disk": {"start refused", "one write refused"},
    "damage": {"all there", "last writes missing", "refused"},
    "writers": set(),
    "servers": {"server killed", "calls", "events"},
}
"""What must have come of some cases, or nothing was tested."""


@pytest.fixture(autouse=True)
def small_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases of which little is enough for a VACUUM; no recording of other code."""
    monkeypatch.setattr(journal, "_MIN_FREE_PAGES", 10)
    monkeypatch.setattr(writes, "_BIG_BYTES", 80_000)
    campaign._recording.cache_clear()


@pytest.mark.parametrize("check", CHECKS)
def test_nothing_is_lost(check: str) -> None:
    result = result_of(check)
    assert [each.text for each in result.problems] == []
    assert result.outcomes.keys() >= OUTCOMES[check]
    assert result.cases > 0


def test_all_operations_on_files_are_looked_at() -> None:
    todo = list(tasks(["kills"], 0, 1, SMALL))
    assert [each.end for each in todo[:-1]] == [each.begin for each in todo[1:]]
    assert todo[0].begin == 0
    assert todo[-1].end == CHECKS["kills"].cases(SMALL, 0) > 250


# -- bugs are found


def test_a_write_that_is_acknowledged_before_it_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    write, late = SqliteJournal._write, dict[SqliteJournal, Callable[[], None]]()

    def write_later(self: SqliteJournal, *values: Any) -> None:
        if self in late:
            late[self]()
        late[self] = partial(write, self, *values)

    monkeypatch.setattr(SqliteJournal, "_write", write_later)
    assert any("is not between" in each.text for each in result_of("kills", Scale(3, 0)).problems)


def test_a_log_that_is_never_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    compact = SqliteJournal._compact

    def prepare_without_syncs(self: SqliteJournal) -> None:
        self._connection.execute("PRAGMA synchronous = OFF")
        compact(self)

    monkeypatch.setattr(SqliteJournal, "_compact", prepare_without_syncs)
    assert result_of("power").problems


def test_a_store_that_counts_refused_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    put = Store.put

    def put_and_count(self: Store, *values: Any) -> Stored:
        try:
            return put(self, *values)
        except ApiError:
            self.revision += 1
            raise

    monkeypatch.setattr(Store, "put", put_and_count)
    assert result_of("disk").problems


def test_a_task_can_be_repeated() -> None:
    task = next(tasks(["damage"], 3, 1, Scale(writes=10, big_objects=0, damaged=5)))
    assert do(task).cases == do(task).cases == 5
