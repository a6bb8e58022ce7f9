"""The cache's rules, one at a time; sequences of events are in test_snapshot_properties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.node import Namespace
from moorage.cluster.cache import Cache, CacheError
from moorage.cluster.columns import COLUMN_MAX
from moorage.cluster.nominations import Nominations
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_table import PodInfo
from tests.builders import make_namespace, make_node, make_pod, port


def requested(cache: Cache, node: str, resource: str = "cpu") -> int:
    snapshot = cache.snapshot()
    return int(snapshot.requested.of(resource)[snapshot.row_of[node]])


def test_a_pod_on_a_node_not_seen_yet_is_kept_and_lands_when_the_node_comes() -> None:
    cache = Cache([make_pod("early", on="a", requests={"cpu": "1"})])
    assert len(cache.snapshot()) == 0
    cache.put_node(make_node("a"))
    assert requested(cache, "a") == 1000
    cache.remove_node("a")
    assert len(cache.snapshot()) == 0
    cache.put_node(make_node("a"))
    assert requested(cache, "a") == 1000
    cache.validate()


def test_assume_confirm_and_forget() -> None:
    cache = Cache([make_node("a"), make_node("b")])
    pod = make_pod("p", uid="p", requests={"cpu": "1"})
    bound = cache.assume_pod(pod, "a")
    assert (bound.spec.node_name, cache.is_assumed(pod), requested(cache, "a")) == ("a", True, 1000)
    with pytest.raises(CacheError, match="is on node a already"):
        cache.assume_pod(pod, "b")
    cache.put_pod(bound)
    assert not cache.is_assumed(pod)
    cache.forget_pod(pod)
    assert requested(cache, "a") == 1000, "a confirmed pod stays"
    cache.remove_pod(pod)
    assert requested(cache, "a") == 0
    cache.assume_pod(pod, "b")
    cache.forget_pod(pod)
    cache.forget_pod(pod)
    assert requested(cache, "b") == 0
    cache.validate()


def test_a_pod_confirmed_with_its_nodes_zone_among_its_labels_is_counted_where_that_is_asked() -> None:
    cache = Cache([make_node("a"), make_pod("other", on="a", uid="other")])
    snapshot = cache.snapshot()
    bound = cache.assume_pod(make_pod("p", uid="p", labels={"app": "x"}, requests={"cpu": "1"}), "a")
    row = cache.snapshot().pods.rows_of(["p"])
    position = snapshot.pods.class_moves.position
    logged, load_logged = snapshot.changes.position, snapshot.load_changes.position
    cache.put_pod(replace(bound, metadata=replace(bound.metadata, labels={"app": "x", "zone": "z"})))
    assert requested(cache, "a") == 1000
    moves = snapshot.pods.class_moves.since(position)
    assert moves is not None
    assert [(dict(value.labels), sign) for _, value, _, sign in moves] == [
        ({"app": "x"}, -1),
        ({"app": "x", "zone": "z"}, 1),
    ]
    assert snapshot.pods.rows_of(["p"]) == row, "nothing else has changed"
    assert snapshot.changes.since(logged) == [snapshot.row_of["a"]]
    assert snapshot.load_changes.since(load_logged) == [], "its row was not written"
    assert not cache.is_assumed(bound)
    cache.validate()


@pytest.mark.parametrize("relabelled", ["first", "last"])
def test_a_relabelled_pod_comes_last_on_its_node_as_in_kube_scheduler(relabelled: str) -> None:
    pods = [make_pod(name, on="a", uid=name) for name in ("first", "middle", "last")]
    cache = Cache([make_node("a"), *pods])
    snapshot = cache.snapshot()
    pod = next(each for each in pods if each.name == relabelled)
    cache.put_pod(replace(pod, metadata=replace(pod.metadata, labels={"zone": "z"})))
    cache.validate()
    order = ["last", "middle", "first"] if relabelled == "first" else ["first", "middle", "last"]
    assert list(snapshot.pods_of(snapshot.row_of["a"])) == order
    assert snapshot.pods_of(snapshot.row_of["a"])[relabelled].pod.labels == {"zone": "z"}


def test_pods_of_one_class_share_it_unless_they_have_very_many_labels() -> None:
    few, many = {"app": "x"}, {f"key-{number}": "" for number in range(100)}
    for labels, is_shared in ((few, True), (many, False)):
        one, other = (PodInfo(make_pod(name, labels=dict(labels))).pod_class for name in ("one", "other"))
        assert one == other
        assert (one is other) == is_shared


def test_a_pod_confirmed_elsewhere_than_assumed_moves() -> None:
    cache = Cache([make_node("a"), make_node("b")])
    pod = make_pod("p", uid="p", requests={"cpu": "1"})
    cache.assume_pod(pod, "a")
    cache.put_pod(make_pod("p", uid="p", requests={"cpu": "1"}, on="b"))
    assert (requested(cache, "a"), requested(cache, "b")) == (0, 1000)
    assert cache.pod("p") is not None


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished_pods_take_nothing(phase: str) -> None:
    cache = Cache([make_node("a"), make_pod("p", uid="p", on="a", requests={"cpu": "1"})])
    cache.put_pod(make_pod("p", uid="p", on="a", requests={"cpu": "1"}, status={"phase": phase}))
    assert requested(cache, "a") == 0
    assert cache.pod("p") is None


def test_a_pod_on_no_node_is_a_mistake() -> None:
    with pytest.raises(CacheError, match="default/p is on no node"):
        Cache().put_pod(make_pod("p"))


def test_a_port_is_free_when_the_last_pod_that_uses_it_goes() -> None:
    def pod(name: str) -> object:
        return make_pod(name, uid=name, on="a", containers=[{"name": "c", "ports": [port(80)]}])

    cache = Cache([make_node("a"), pod("x"), pod("y")])  # type: ignore[list-item]
    cache.remove_pod(make_pod("x", uid="x"))
    assert cache.snapshot().ports[0] == frozenset({("0.0.0.0", "TCP", 80)})
    cache.remove_pod(make_pod("y", uid="y"))
    assert cache.snapshot().ports[0] == frozenset()


def test_amounts_too_large_for_a_column_count_as_the_largest() -> None:
    cache = Cache([make_node("a", allocatable={"memory": "12E", "cpu": "1"})])
    snapshot = cache.snapshot()
    assert snapshot.allocatable.of("memory").tolist() == [COLUMN_MAX]


def test_a_nomination_ends_when_the_pod_is_on_a_node_or_gone() -> None:
    cache = Cache([make_node("a")])
    pod, other = make_pod("p", uid="p"), make_pod("q", uid="q")
    cache.nominations.put(pod, "a")
    cache.nominations.put(other, "a")
    assert [info.pod.name for info in cache.snapshot().nominated.on("a")] == ["p", "q"]
    cache.assume_pod(pod, "a")
    cache.remove_pod(other)
    assert not cache.snapshot().nominated
    cache.nominations.put(other, "a")
    cache.nominations.put(other, "")
    assert cache.nominations.node_of("q") is None


@pytest.mark.parametrize(
    ("change", "is_noted"),
    [
        pytest.param({"status": {"nominatedNodeName": "a"}}, False, id="its status"),
        pytest.param({"requests": {"cpu": "2"}}, True, id="its requests"),
        pytest.param({"labels": {"app": "b"}}, True, id="its labels"),
    ],
)
def test_an_update_of_a_nominated_pod_changes_its_node_if_scheduling_reads_what_changed(
    change: dict[str, Any], is_noted: bool
) -> None:
    cache = Cache([make_node("a")])
    cache.nominations.put(make_pod("p", uid="p", requests={"cpu": "1"}), "a")
    before = cache.snapshot().changes.position
    updated = make_pod("p", uid="p", **{"requests": {"cpu": "1"}, **change})
    cache.nominations.put(updated, "a")
    assert [info.pod for info in cache.snapshot().nominated.on("a")] == [updated]
    assert (cache.snapshot().changes.position > before) is is_noted


def test_the_requests_of_a_nominated_pod_are_those_of_its_equivalence_class() -> None:
    nominations, first = Nominations(), PodInfo(make_pod("p", uid="p", requests={"cpu": "1"}))
    second = make_pod("q", uid="q", requests={"cpu": "1"})
    nominations.put(second, "a", first)
    (info,) = nominations.on("a")
    assert info.pod is second
    assert info.load is first.load


def test_an_assumed_object_shows_until_the_server_speaks_again() -> None:
    objects = Objects()
    table = objects.of(Namespace)
    replica = Objects()
    table.put(make_namespace("n", team="a"))
    table.assume(make_namespace("n", team="b"))
    replica.sync_from(objects)
    assert replica.of(Namespace).get("", "n") == make_namespace("n", team="b")
    assert table.stored("", "n") == make_namespace("n", team="a")
    table.forget("", "n")
    table.forget("", "n")
    replica.sync_from(objects)
    assert replica.of(Namespace).get("", "n") == make_namespace("n", team="a")
    table.assume(make_namespace("n", team="b"))
    table.put(make_namespace("n", team="c"))
    table.forget("", "n")
    assert table.get("", "n") == make_namespace("n", team="c")
    assert replica.of(Namespace).version < table.version


def test_a_snapshot_does_not_move_until_the_next_one() -> None:
    cache = Cache([make_node("a"), make_namespace("n")])
    snapshot = cache.snapshot()
    cache.put_node(make_node("b"))
    cache.put(make_namespace("m"))
    cache.put_pod(make_pod("p", on="a"))
    assert (snapshot.names, len(snapshot.objects.of(Namespace)), snapshot.pod_count.values.tolist()) == (
        ["a"],
        1,
        [0],
    )
    cache.snapshot()
    assert (snapshot.names, len(snapshot.objects.of(Namespace)), snapshot.pod_count.values.tolist()) == (
        ["a", "b"],
        2,
        [1, 0],
    )


def test_columns_cannot_be_changed_by_readers() -> None:
    snapshot = Cache([make_node("a")]).snapshot()
    with pytest.raises(ValueError, match="read-only"):
        snapshot.allocatable.of("cpu")[0] = 5


def test_written_rows_are_reported_and_moved_ones_end_what_was_known() -> None:
    cache = Cache([make_node("a"), make_node("b"), make_node("c")])
    before, nodes_before = cache.snapshot().changes.position, cache.snapshot().node_changes.position
    assert cache.snapshot().changes.since(before) == []
    cache.put_pod(make_pod("p", on="b"))
    assert cache.snapshot().changes.since(before) == [1]
    assert cache.snapshot().node_changes.since(nodes_before) == []
    cache.put_node(make_node("c", unschedulable=True))
    assert cache.snapshot().changes.since(before) == [1, 2]
    assert cache.snapshot().node_changes.since(nodes_before) == [2]
    cache.remove_node("a")
    snapshot = cache.snapshot()
    assert snapshot.names == ["c", "b"]
    assert snapshot.changes.since(before) is None
    assert snapshot.changes.since(snapshot.changes.position) == []


def test_rows_are_reported_whose_own_object_changed_if_its_kind_is_followed() -> None:
    cache = Cache([make_node("a"), make_node("b"), make_namespace("b")])
    log, nodes_log = cache.snapshot().changes, cache.snapshot().node_changes
    before, nodes_before = log.position, nodes_log.position
    cache.put(make_namespace("b", team="x"))
    cache.snapshot()
    assert log.since(before) == []
    cache.snapshot().follow([Namespace])
    for changed in (make_namespace("b", team="y"), make_namespace("elsewhere")):
        cache.put(changed)
        assert cache.snapshot().changes.since(before) == [1]
    assert nodes_log.since(nodes_before) == [1]
    cache.remove(make_namespace("b"))
    assert cache.snapshot().changes.since(before) == [1]
    assert cache.snapshot().load_changes.position == before + 2
    for number in range(3000):
        cache.put(make_namespace(f"n{number}"))
    assert cache.snapshot().changes.since(before) is None


def test_the_pods_on_a_node_are_listed_as_they_are_now() -> None:
    cache = Cache([make_node("a"), make_pod("old", uid="old", on="a")])
    cache.assume_pod(make_pod("new", uid="new"), "a")
    assert [pod.name for pod in cache.pods_on("a")] == ["old", "new"]
    assert cache.pods_on("elsewhere") == []


def test_pods_forgotten_and_assumed_again_change_no_load() -> None:
    cache = Cache([make_node("a"), make_node("b"), make_pod("old", uid="old", on="a")])
    like = PodInfo(make_pod("x", requests={"cpu": "1"}))
    pods = [make_pod(name, uid=name, requests={"cpu": "1"}) for name in ("p", "q")]
    assumed = [cache.assume_pod(pod, "a", like) for pod in pods]
    before = cache.snapshot().load_changes.position
    for pod in reversed(assumed):
        cache.forget_pod(pod)
    for pod in pods:
        cache.assume_pod(pod, "a", like)
    assert cache.snapshot().load_changes.since(before) == []
    assert list(cache.snapshot().pods_of(0)) == ["old", "p", "q"]
    cache.validate()


def _renew_node(cache: Cache) -> None:
    cache.put_node(make_node("a", unschedulable=True))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda cache: cache.assume_pod(make_pod("more", uid="more"), "a"), id="another pod"),
        pytest.param(lambda cache: cache.remove_pod(make_pod("old", uid="old")), id="a pod less"),
        pytest.param(_renew_node, id="another node"),
    ],
)
def test_a_pod_assumed_again_hides_no_other_change(change: Callable[[Cache], object]) -> None:
    cache = Cache([make_node("a"), make_pod("old", uid="old", on="a")])
    like, pod = PodInfo(make_pod("x")), make_pod("p", uid="p")
    assumed = cache.assume_pod(pod, "a", like)
    before = cache.snapshot().load_changes.position
    cache.forget_pod(assumed)
    change(cache)
    cache.assume_pod(pod, "a", like)
    assert cache.snapshot().load_changes.since(before) == [0]
    cache.validate()


@pytest.mark.parametrize("count", [3, 5000])
def test_many_pods_at_once_are_the_same_as_one_by_one(count: int) -> None:
    nodes = [make_node(f"n{number}") for number in range(3)]
    pods = [
        make_pod(f"p{number}", on=f"n{number % 3}", labels={"n": str(number % 7)}, requests={"cpu": "1m"})
        for number in range(count)
    ]
    together, one_by_one = Cache(nodes), Cache(nodes)
    together.snapshot()
    together.add_pods([PodInfo(pod) for pod in pods])
    for pod in pods:
        one_by_one.put_pod(pod)
    assert together.snapshot().contents() == one_by_one.snapshot().contents()
    fresh = Cache(nodes)
    fresh.add_pods([PodInfo(pod) for pod in pods])
    assert fresh.snapshot().contents() == one_by_one.snapshot().contents()
    assert fresh.snapshot().pods.nodes_of([0]).tolist() == one_by_one.snapshot().pods.nodes_of([0]).tolist()
    for pod in pods[:10]:
        fresh.remove_pod(pod)
    fresh.validate()
    together.validate()
