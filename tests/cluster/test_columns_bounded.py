"""What users write into pods adds no columns: label keys and resources count only where nodes have them."""

from __future__ import annotations

import pytest

from moorage.cluster import labels
from moorage.cluster.cache import Cache
from tests.builders import ZONE, make_node, make_pod


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


def test_a_pod_put_onto_a_node_with_thousands_of_unknown_resources_makes_no_lane() -> None:
    requests = {f"example.com/{number}": "1" for number in range(2000)}
    cache = Cache([make_node("a"), make_pod("p", uid="p", on="a", requests={**requests, "cpu": "1"})])
    snapshot = cache.snapshot()
    assert list(snapshot.resource_lanes) == ["cpu", "memory", "ephemeral-storage"]
    assert snapshot.lane(snapshot.requested, "cpu").tolist() == [1000]
    assert snapshot.lane(snapshot.requested, "example.com/7").tolist() == [0]


def test_what_pods_take_of_a_resource_counts_from_when_a_node_has_it() -> None:
    taken = {"example.com/gpu": "2"}
    cache = Cache([make_node("a"), make_pod("p", uid="p", on="a", requests=taken)])
    assert cache.snapshot().pods.load.values.shape == (3, 1)
    cache.put_node(make_node("b", allocatable={"example.com/gpu": "8", "pods": "10"}))
    cache.put_pod(make_pod("q", uid="q", on="b", requests=taken))
    snapshot = cache.snapshot()
    assert snapshot.lane(snapshot.requested, "example.com/gpu").tolist() == [2, 2]
    assert snapshot.lane(snapshot.allocatable, "example.com/gpu").tolist() == [0, 8]
    assert snapshot.pods.load.values[snapshot.resource_lanes["example.com/gpu"]].tolist() == [2, 2]
    cache.validate()
