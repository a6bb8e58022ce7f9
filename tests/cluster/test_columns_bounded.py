"""What is kept of label keys and resources is bounded by the nodes that have them, whatever pods ask for."""

from __future__ import annotations

import pytest

from moorage.cluster import label_columns as labels
from moorage.cluster import resources
from moorage.cluster.cache import Cache
from tests.builders import ZONE, make_node, make_pod

GPU = "example.com/gpu"


def test_selecting_by_thousands_of_unknown_keys_keeps_nothing() -> None:
    snapshot = Cache([make_node("a", labels={ZONE: "z"}), make_node("b")]).snapshot()
    columns = [snapshot.label(f"unknown-{number}") for number in range(5000)]
    assert len({id(column.codes) for column in columns}) == 1
    assert columns[0].codes.tolist() == [-1, -1]
    assert snapshot.labels.read_keys == []
    assert snapshot.label(ZONE)[0] == "z"
    assert snapshot.labels.read_keys == [ZONE]


def test_a_key_is_known_from_the_first_node_that_has_it_to_the_last() -> None:
    cache = Cache([make_node("a"), make_node("b")])
    assert cache.snapshot().label("disk")[0] is None
    cache.put_node(make_node("a", labels={"disk": "ssd"}))
    assert cache.snapshot().label("disk")[0] == "ssd"
    cache.put_node(make_node("b", labels={"disk": "ssd"}))
    cache.put_node(make_node("a", labels={}))
    assert cache.snapshot().labels.read_keys == ["disk"]
    cache.remove_node("b")
    assert cache.snapshot().labels.read_keys == []
    assert cache.snapshot().label("disk").codes.tolist() == [-1]
    cache.validate()


def test_keys_that_few_nodes_have_get_no_column() -> None:
    few, many = labels._MIN_FEW_NODES, 2 * labels._MIN_FEW_NODES + 1
    cache = Cache(
        make_node(f"n{n}", labels={"many": "x", f"own-{n}": str(n), **({"few": "y"} if n < few else {})})
        for n in range(many)
    )
    for key in ("few", "many", *(f"own-{n}" for n in range(many))):
        cache.snapshot().label(key)
    assert cache.snapshot().label("own-7").codes.tolist() == [0 if n == 7 else -1 for n in range(many)]
    assert cache.snapshot().label("few").codes.tolist() == [0] * few + [-1] * (many - few)
    assert cache.snapshot().labels.kept_columns == ["many"]
    cache.validate()


def test_a_key_loses_its_column_when_few_nodes_still_have_it() -> None:
    few, many = labels._MIN_FEW_NODES, 2 * labels._MIN_FEW_NODES + 1
    cache = Cache(make_node(f"n{n}", labels={"disk": f"d{n}"}) for n in range(many))
    before = cache.snapshot().label("disk").codes.tolist()
    for number in range(few, many):
        cache.put_node(make_node(f"n{number}"))
    assert cache.snapshot().label("disk").codes.tolist() == before[:few] + [-1] * (many - few)
    assert cache.snapshot().labels.kept_columns == []
    cache.validate()


def test_columns_of_keys_that_many_nodes_have_are_bounded_the_least_recently_read_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(labels, "_MIN_FEW_NODES", 0)
    monkeypatch.setattr(labels, "_MAX_CELLS", 0)
    monkeypatch.setattr(labels, "_MIN_COLUMNS", 3)
    cache = Cache([make_node("a", labels={f"known-{number}": "x" for number in range(10)})])
    for number in (*range(9), 6, 9):
        assert cache.snapshot().label(f"known-{number}")[0] == "x"
    assert cache.snapshot().labels.kept_columns == ["known-8", "known-6", "known-9"]
    assert cache.snapshot().label("known-0")[0] == "x"
    cache.validate()


def test_values_keep_their_codes_when_a_column_is_dropped_and_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(labels, "_MIN_FEW_NODES", 0)
    monkeypatch.setattr(labels, "_MAX_CELLS", 0)
    monkeypatch.setattr(labels, "_MIN_COLUMNS", 1)
    cache = Cache([make_node("a", labels={ZONE: "z1", "x": "y"}), make_node("b", labels={ZONE: "z2"})])
    cache.snapshot().label(ZONE)
    cache.put_node(make_node("a", labels={ZONE: "z3", "x": "y"}))
    codes = cache.snapshot().label(ZONE).codes.tolist()
    cache.snapshot().label("x")
    assert cache.snapshot().labels.kept_columns == ["x"]
    assert cache.snapshot().label(ZONE).codes.tolist() == codes != [0, 1]


def test_a_pod_put_onto_a_node_with_thousands_of_unknown_resources_makes_no_column() -> None:
    requests = {f"example.com/{number}": "1" for number in range(2000)}
    cache = Cache([make_node("a"), make_pod("p", uid="p", on="a", requests={**requests, "cpu": "1"})])
    snapshot = cache.snapshot()
    assert snapshot.requested.kept == ["cpu", "memory", "ephemeral-storage"]
    assert snapshot.requested.of("cpu").tolist() == [1000]
    assert snapshot.allocatable.of("example.com/7").tolist() == [0]
    assert snapshot.allocatable.kept == ["cpu", "memory", "ephemeral-storage"]
    cache.validate()


def test_a_resource_of_its_own_on_every_node_makes_few_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_MAX_CELLS", 0)
    monkeypatch.setattr(resources, "_MIN_COLUMNS", 2)
    own = [make_node(f"n{n}", allocatable={f"example.com/{n}": "1", "cpu": "4"}) for n in range(20)]
    cache = Cache(own)
    for number in range(20):
        column = cache.snapshot().allocatable.of(f"example.com/{number}")
        assert (column.sum(), column[number]) == (1, 1)
    kept = ["cpu", "memory", "ephemeral-storage", "example.com/18", "example.com/19"]
    assert cache.snapshot().allocatable.kept == kept
    assert cache.snapshot().requested.kept == kept[:3]
    cache.remove_node("n18")
    assert cache.snapshot().allocatable.kept == [*kept[:3], "example.com/19"]
    cache.validate()


def test_columns_of_resources_follow_nodes_and_pods() -> None:
    taken = {GPU: "2"}
    cache = Cache([make_node("a"), make_pod("p", uid="p", on="a", requests=taken)])
    cache.put_node(make_node("b", allocatable={GPU: "8", "pods": "10"}))
    cache.put_pod(make_pod("q", uid="q", on="b", requests=taken))
    snapshot = cache.snapshot()
    assert snapshot.requested.of(GPU).tolist() == [2, 2]
    assert snapshot.allocatable.of(GPU).tolist() == [0, 8]
    assert snapshot.pods.load(GPU).tolist() == [2, 2]
    cache.put_node(make_node("a", allocatable={GPU: "4"}))
    cache.remove_pod(make_pod("q", uid="q", on="b", requests=taken))
    assert cache.snapshot().requested.of(GPU).tolist() == [2, 0]
    assert cache.snapshot().allocatable.of(GPU).tolist() == [4, 8]
    cache.remove_node("a")
    assert cache.snapshot().requested.of(GPU).tolist() == [0]
    assert cache.snapshot().allocatable.of(GPU).tolist() == [8]
    cache.validate()
