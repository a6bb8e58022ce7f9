"""However large objects are and however often they change, what the store holds is bounded."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.schema.wire import wire_format
from moorage_cluster.apiserver.embedded import Settings
from moorage_cluster.apiserver.object_size import check_size
from moorage_cluster.apiserver.store import Change, Collection, Store, Stored, encode
from tests.apiserver.client import Cluster, configmap, pod

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
EVENTS = "/api/v1/namespaces/default/events"


def put(store: Store, storage: str, name: str, size: int) -> None:
    store.put(store.collection(storage), configmap(name, x="x" * size), {})


def held_bytes(store: Store) -> int:
    """The encoded objects that only logs hold, each counted once."""
    found: dict[int, Stored] = {}
    for collection in store.collections():
        for change in _kept(collection):
            for stored in (change.stored, change.previous):
                if stored is not None and collection.get(stored.key) is not stored:
                    found[id(stored)] = stored
    return sum(len(stored.raw) for stored in found.values())


def _kept(collection: Collection) -> list[Change]:
    return list(collection.log.reversed_until(collection.log.oldest))


def test_small_changes_of_large_objects_do_not_fill_the_memory_with_history() -> None:
    store = Store(history_bytes=1_000_000)
    for _ in range(40):
        put(store, "a", "large", 100_000)
        put(store, "b", "small", 100)
        assert held_bytes(store) <= 1_000_000
    logs = [store.collection(name).log for name in "ab"]
    assert [log.held_bytes for log in logs] == [
        sum(change.held_bytes for change in log.reversed_until(log.oldest)) for log in logs
    ]
    assert len(_kept(store.collection("b"))) == 40, "what holds little goes last"


def test_history_of_deleted_objects_is_bounded_too() -> None:
    store = Store(history_bytes=1_000_000)
    for index in range(40):
        put(store, "a", f"large-{index}", 100_000)
        store.delete(store.collection("a"), ("default", f"large-{index}"))
    assert held_bytes(store) <= 1_000_000


def test_what_the_log_counts_is_what_it_holds() -> None:
    store = Store()
    for index in range(5):
        put(store, "a", "one", 1000 * index)
        put(store, "a", f"other-{index}", 10)
    store.delete(store.collection("a"), ("default", "one"))
    assert store.collection("a").log.held_bytes == held_bytes(store)


def test_decoded_form_of_a_replaced_object_is_not_held() -> None:
    store = Store()
    put(store, "a", "one", 10)
    first = store.collection("a").items["default", "one"]
    assert first.obj is first.obj, "it is decoded once"
    put(store, "a", "one", 20)
    assert first._obj is None


def test_events_about_one_pod_share_what_they_are_selected_by(cluster: Cluster) -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "some-pod", "uid": "0b1c2d3e", "apiVersion": "v1"}
    for name in "ab":
        cluster.create(EVENTS, {"metadata": {"name": name}, "involvedObject": about, "reason": "Started"})
    first, second = (cluster.server.store.collection("/events").items["default", name] for name in "ab")
    assert first.fields.get("involvedObject.uid") == "0b1c2d3e"
    assert first.fields.positions is second.fields.positions
    pairs = zip(first.fields.values, second.fields.values, strict=True)
    assert all(one is other for one, other in pairs), "there are some six events of each pod, for an hour"


def test_a_watcher_behind_the_dropped_history_must_list_again(cluster: Cluster) -> None:
    cluster.server.store._most_history_bytes = 1_000_000
    first = cluster.create(MAPS, configmap("a", x="x" * 300_000))["metadata"]["resourceVersion"]
    watcher = cluster.watch(MAPS, resourceVersion=first)
    for letter in "bcdefg":
        cluster.put(f"{MAPS}/a", configmap("a", x=letter * 300_000))
    assert cluster.get(MAPS, watch="1", resourceVersion=first).code == 410
    assert [event["object"]["code"] for event in watcher.events() if event["type"] == "ERROR"] == [410]


def test_events_about_large_objects_are_sent_one_after_another(cluster: Cluster) -> None:
    for name in "abc":
        cluster.create(MAPS, configmap(name, x="x" * 700_000))
    watcher = cluster.watch(MAPS)
    pieces: list[bytes] = []
    for _ in range(2):
        pieces.append(watcher._runner.run(anext(watcher._pieces)))  # type: ignore[arg-type]
    assert all(len(piece) < 1_500_000 for piece in pieces)


SENT = [
    (1_500_000, 201, ""),
    (1_600_000, 500, "etcdserver: request is too large"),
    (2_900_000, 500, "rpc error: code = ResourceExhausted desc = trying to send message larger than max ("),
]


@pytest.mark.parametrize(("size", "code", "message"), SENT, ids=["fits", "too large", "far too large"])
def test_object_larger_than_etcd_takes_is_refused(
    cluster: Cluster, size: int, code: int, message: str
) -> None:
    wanted = pod("a", containers=[{"name": "c", "image": "i", "args": ["a" * size]}])
    answer = cluster.post(PODS, wanted)
    assert (answer.code, answer.message[: len(message)]) == (code, message)
    assert cluster.exists(f"{PODS}/a") == (code == 201)
    assert cluster.post(PODS, pod("b", **wanted["spec"]), dryRun="All").code == 201, "nothing is stored"


def test_size_is_that_of_protobuf_as_on_a_real_server(cluster: Cluster) -> None:
    """kube-apiserver v1.36.4 took this pod with 68,846 tolerations of its own and not with one more."""
    wanted = pod("e", containers=[{"name": "c", "image": "i"}], automountServiceAccountToken=False)
    obj = cluster.create(PODS, wanted)
    del obj["metadata"]["labels"]
    defaults = obj["spec"]["tolerations"]
    own = [{"key": f"N{index}", "operator": "Exists"} for index in range(68_860)]
    obj["spec"]["tolerations"] = [*own[:68_840], *defaults]
    raw = encode(obj)
    assert len(raw) > 2_500_000
    check_size(obj, raw, wire_format())
    obj["spec"]["tolerations"] = [*own, *defaults]
    with pytest.raises(ApiError, match="etcdserver: request is too large"):
        check_size(obj, encode(obj), wire_format())


def test_database_gives_back_the_room_of_deleted_objects(tmp_path: Path) -> None:
    cluster = Cluster(Settings(tmp_path))
    for index in range(12):
        cluster.create(MAPS, configmap(f"m-{index}", x="x" * 700_000))
    cluster.delete(MAPS)
    cluster.close()
    Cluster(Settings(tmp_path)).close()
    assert (tmp_path / "objects.db").stat().st_size < 2_000_000
    with closing(sqlite3.connect(tmp_path / "objects.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
