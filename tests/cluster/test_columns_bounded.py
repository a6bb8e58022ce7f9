"""What users write into pods adds no columns: label keys and resources count only where nodes have them."""

from __future__ import annotations

import pytest

from moorage.cluster import label_columns as labels
from moorage.cluster import resources
from moorage.cluster.cache import Cache
from tests.builders import ZONE, make_node, make_pod

GPU = "example.com/gpu"


def test_selecting_by_thousands_of_unknown_keys_makes_no_column() -> None:
    snapshot = Cache([make_node("a", labels={ZONE: "z"}), make_node("b")]).snapshot()
    columns = {id(snapshot.label(f"unknown-{number}")) for number in range(5000)}
    assert (len(columns), snapshot.labels.kept_keys) == (1, [])
    assert snapshot.label("unknown-1").codes.tolist() == [-1, -1]
    assert snapshot.label(ZONE)[0] == "z"
    assert snapshot.labels.kept_keys == [ZONE]


def test_a_key_gets_its_column_with_the_first_node_that_has_it_and_loses_it_with_the_last() -> None:
    cache = Cache([make_node("a"), make_node("b")])
    assert cache.snapshot().label("disk")[0] is None
    cache.put_node(make_node("a", labels={"disk": "ssd"}))
    assert cache.snapshot().label("disk")[0] == "ssd"
    cache.put_node(make_node("b", labels={"disk": "ssd"}))
    cache.put_node(make_node("a", labels={}))
    assert cache.snapshot().labels.kept_keys == ["disk"]
    cache.remove_node("b")
    assert cache.snapshot().labels.kept_keys == []
    assert cache.snapshot().label("disk").codes.tolist() == [-1]
    cache.validate()


def test_columns_of_known_keys_are_bounded_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "_MAX_CELLS", 0)
    monkeypatch.setattr(labels, "_MIN_COLUMNS", 3)
    cache = Cache([make_node("a", labels={f"known-{number}": "x" for number in range(10)})])
    for number in range(10):
        assert cache.snapshot().label(f"known-{number}")[0] == "x"
    assert cache.snapshot().labels.kept_keys == ["known-7", "known-8", "known-9"]
    assert cache.snapshot().label("known-0")[0] == "x"
    cache.validate()


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
