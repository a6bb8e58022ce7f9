"""Journals and row logs: the entries since a position, as long as they are kept."""

from __future__ import annotations

from moorage.cluster.cache import Cache
from moorage.cluster.journal import Journal
from moorage.cluster.row_log import RowLog
from tests.builders import HOSTNAME, REQUIRED, make_node, make_pod, pod_term

APART = {"podAntiAffinity": {REQUIRED: [pod_term(HOSTNAME, {"matchLabels": {"app": "a"}})]}}


def test_a_reader_gets_what_is_new_unless_it_is_too_late() -> None:
    journal: Journal[str] = Journal(kept=2)
    assert journal.since(journal.position) == []
    for letter in "abcd":
        journal.note(letter)
    assert journal.since(0) == ["a", "b", "c", "d"]
    journal.note("e")
    assert journal.position == 5
    assert [journal.since(position) for position in range(6)] == [
        None,
        None,
        ["c", "d", "e"],
        ["d", "e"],
        ["e"],
        [],
    ]


def test_a_reader_of_rows_sees_each_once_and_starts_over_after_rows_moved() -> None:
    log = RowLog()
    for row in (3, 1, 3):
        log.note(row)
    assert [log.since(position) for position in range(4)] == [[3, 1], [1, 3], [3], []]
    read = log.position
    log.start_over()
    log.note(2)
    assert (log.since(read), log.since(read + 1)) == (None, [2])
    for row in range(10_000):
        log.note(row)
    assert log.since(read + 1) is None, "the log is bounded"
    assert log.since(log.position - 4096) == list(range(10_000 - 4096, 10_000))


def test_pods_that_come_go_and_move_are_in_the_table_s_journals() -> None:
    cache = Cache([make_node("a"), make_node("b")])
    table = cache.snapshot().pods
    cache.put(make_pod("plain", on="a", labels={"app": "a"}))
    cache.put(make_pod("apart", on="b", labels={"app": "b"}, affinity=APART))
    cache.snapshot()
    cache.remove_node("a")
    cache.snapshot()
    cache.remove(make_pod("apart", on="b"))
    cache.snapshot()
    moves = [
        (dict(value.labels)["app"], row, sign) for _, value, row, sign in table.class_moves.since(0) or ()
    ]
    assert moves == [
        ("a", 0, 1),
        ("b", 1, 1),
        ("a", 0, -1),
        # The last row moves into the row of the removed node.
        ("b", 1, -1),
        ("b", 0, 1),
        ("b", 0, -1),
    ]
    assert [(row, sign) for _, _, row, sign in table.terms_moves.since(0) or ()] == [
        (1, 1),
        (1, -1),
        (0, 1),
        (0, -1),
    ]


def test_pods_of_one_class_share_the_value_by_which_it_is_known() -> None:
    cache = Cache([make_node("a")])
    for name in ("one", "two"):
        cache.put(make_pod(name, on="a", labels={"app": "a"}, affinity=APART))
    pods = cache.snapshot().pods
    cache.remove(make_pod("one", on="a"))
    cache.snapshot()
    for journal in (pods.class_moves, pods.terms_moves):
        moves = journal.since(0) or []
        assert [sign for _, _, _, sign in moves] == [1, 1, -1]
        assert len({id(value) for _, value, _, _ in moves}) == 1


def test_rows_as_an_array_are_the_same_rows_each_once() -> None:
    log = RowLog()
    for row in (7, 3, 7, 5, 3):
        log.note(row)
    rows = log.array_since(log.position - 4, 10)
    assert rows is not None
    assert rows.tolist() == sorted(log.since(log.position - 4) or [])
    assert log.array_since(-1, 10) is None
    log.start_over()
    assert log.array_since(log.position - 1, 10) is None
