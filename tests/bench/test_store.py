from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from moorage.api.decode import KINDS, convert
from moorage.client.client import Client
from moorage.client.informer import Informer
from moorage.client.kinds import EVENT, NODE, PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_CLAIM, SERVICE, Kind
from moorage.clock import VirtualClock
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.sim.object_store import ObjectStore
from moorage.sim.store_client import StoreClient, StoreInformer
from tests.bench.files import node, pod

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Place:
    """A store, its client, and what a listener heard."""

    def __init__(self) -> None:
        self.store = ObjectStore(lambda: NOW)
        self.client = StoreClient(self.store)
        self.recorded: list[tuple[str, str]] = []

    def watch(self, kind: Kind) -> None:
        self.store.watch(kind, [lambda type, obj, before: self.recorded.append((type, obj.name))])

    def add(self, kind: Kind, manifest: dict[str, Any], namespace: str = "a") -> Any:
        return self.store.create(kind, namespace, convert(manifest, KINDS[kind.name]))

    def pod(self, name: str, **spec: Any) -> Any:
        return self.add(POD, pod(name, **spec))

    def do(self, work: Any) -> Any:
        return asyncio.run(work)

    def bind(self, pod: Any, node_name: str = "n") -> None:
        binding = {"metadata": {"uid": pod.metadata.uid}, "target": {"name": node_name}}
        self.do(self.client.create_part(POD, "a", pod.name, "binding", binding))


@pytest.fixture
def place() -> Place:
    return Place()


def refused(work: Any) -> RequestError:
    with pytest.raises(RequestError) as error:
        asyncio.run(work)
    return error.value


def test_objects_get_names_and_identities(place: Place) -> None:
    one, two = (place.add(SERVICE, {"metadata": {"generateName": "s-"}}) for _ in range(2))
    assert one.name.startswith("s-")
    assert len({one.name, two.name}) == len({one.metadata.uid, two.metadata.uid}) == 2
    assert (one.namespace, one.metadata.creation_timestamp) == ("a", NOW)
    assert int(two.metadata.resource_version) > int(one.metadata.resource_version)
    assert place.add(NODE, node()).namespace == ""


def test_a_name_is_taken_once(place: Place) -> None:
    place.pod("p")
    with pytest.raises(RequestError) as error:
        place.pod("p")
    assert error.value.already_exists


def test_nodes_without_allocatable_have_their_capacity(place: Place) -> None:
    status = place.add(NODE, node()).status
    assert status.allocatable == status.capacity != {}
    less = place.add(NODE, node(status={"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1"}})).status
    assert less.allocatable != less.capacity


def test_gated_pods_say_so(place: Place) -> None:
    (condition,) = place.pod("p", schedulingGates=[{"name": "x"}]).status.conditions
    assert (condition.type, condition.status, condition.reason) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
    )


def test_changes_are_received_at_once_and_in_order(place: Place) -> None:
    one = place.pod("one")
    place.watch(POD)
    place.pod("two")
    place.bind(one)
    place.store.delete(POD, "a", "two")
    assert place.recorded == [("ADDED", "one"), ("ADDED", "two"), ("MODIFIED", "one"), ("DELETED", "two")]


def test_binding(place: Place) -> None:
    place.bind(place.pod("p"))
    stored = place.store.get(POD, "a", "p")
    assert stored.spec.node_name == "n"
    (condition,) = stored.status.conditions
    assert (condition.type, condition.status) == ("PodScheduled", "True")
    assert condition.last_transition_time == NOW


def test_pods_bound_within_a_second_share_the_time_and_others_do_not() -> None:
    times = iter([NOW, NOW + timedelta(milliseconds=1500), NOW + timedelta(milliseconds=1900)])
    place = Place()
    pods = [place.pod(name) for name in ("one", "two", "three")]
    place.store._now = lambda: next(times)
    for each in pods:
        place.bind(each)
    statuses = [place.store.get(POD, "a", each.name).status for each in pods]
    assert [each.conditions[0].last_transition_time for each in statuses] == [
        NOW,
        NOW + timedelta(seconds=1),
        NOW + timedelta(seconds=1),
    ]
    assert statuses[1] is statuses[2]


def test_what_cannot_be_bound(place: Place) -> None:
    def binding(pod: Any, uid: str = "") -> RequestError:
        body = {"metadata": {"uid": uid or pod.metadata.uid}, "target": {"name": "m"}}
        return refused(place.client.create_part(POD, "a", pod.name, "binding", body))

    bound = place.pod("bound")
    place.bind(bound)
    going = place.add(POD, pod("going") | {"metadata": {"name": "going", "finalizers": ["x"]}})
    place.store.delete(POD, "a", "going")
    other = place.pod("other")
    assert binding(bound).is_conflict
    assert binding(going).is_conflict
    assert binding(other, uid="somebody else's").is_conflict
    place.store.delete(POD, "a", "other")
    assert binding(other).is_not_found


@pytest.mark.parametrize(
    ("spec", "is_bound", "finalizers", "is_gone"),
    [
        ({}, False, [], True),
        ({}, True, [], False),  # Half a minute to end, and no kubelet to say that it has.
        ({"terminationGracePeriodSeconds": 0}, True, [], True),
        ({"terminationGracePeriodSeconds": 0}, False, ["x"], False),
    ],
)
def test_pods_go_at_once_or_are_only_marked(
    place: Place, spec: dict[str, Any], is_bound: bool, finalizers: list[str], is_gone: bool
) -> None:
    made = place.add(POD, pod("p", **spec) | {"metadata": {"name": "p", "finalizers": finalizers}})
    if is_bound:
        place.bind(made)
    place.do(place.client.delete(POD, "a", "p", uid=made.metadata.uid))
    left = place.store.table(POD).get(("a", "p"))
    assert (left is None) is is_gone
    if left is not None:
        assert left.terminating
        version = left.metadata.resource_version
        place.store.delete(POD, "a", "p")
        assert place.store.get(POD, "a", "p").metadata.resource_version == version


def test_another_pod_of_the_same_name_is_not_deleted(place: Place) -> None:
    place.pod("p")
    assert refused(place.client.delete(POD, "a", "p", uid="old")).is_conflict


def test_statuses_are_merged(place: Place) -> None:
    made = place.pod("p")

    def patch(meta: dict[str, Any], **status: Any) -> Any:
        return place.client.patch(POD, "a", "p", {"metadata": meta, "status": status}, "strategic", "status")

    condition = {"type": "PodScheduled", "status": "False", "message": "no"}
    version = made.metadata.resource_version
    place.do(patch({"resourceVersion": version}, conditions=[condition], nominatedNodeName="n"))
    place.do(patch({}, conditions=[{"type": "Other", "status": "True"}]))
    status = place.store.get(POD, "a", "p").status
    assert [(each.type, each.status) for each in status.conditions] == [
        ("PodScheduled", "False"),
        ("Other", "True"),
    ]
    assert status.nominated_node_name == "n"
    place.do(patch({}, nominatedNodeName=None))
    answer = place.do(patch({}, extendedResourceClaimStatus={"resourceClaimName": "c"}))
    assert answer["status"]["extendedResourceClaimStatus"] == {"resourceClaimName": "c"}
    assert place.store.get(POD, "a", "p").status.nominated_node_name == ""
    assert refused(patch({"resourceVersion": version})).is_conflict
    assert refused(patch({"uid": "other"})).is_conflict


def test_other_objects_are_patched_as_values(place: Place) -> None:
    claim = place.add(PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": "c", "annotations": {"a": "1"}}})
    patch = {
        "metadata": {
            "annotations": {"a": None, "b": "2"},
            "resourceVersion": claim.metadata.resource_version,
        },
        "spec": {"volumeName": "v"},
    }
    stored = place.do(place.client.patch(PERSISTENT_VOLUME_CLAIM, "a", "c", patch, "merge"))
    assert stored["metadata"]["annotations"] == {"b": "2"}
    assert place.store.get(PERSISTENT_VOLUME_CLAIM, "a", "c").spec.volume_name == "v"
    assert refused(place.client.patch(PERSISTENT_VOLUME_CLAIM, "a", "c", patch, "merge")).is_conflict


def test_what_else_the_scheduler_asks_for(place: Place) -> None:
    body = {"metadata": {"name": "claim"}, "spec": {}}
    assert place.do(place.client.create(RESOURCE_CLAIM, "a", body))["metadata"]["uid"]
    assert place.do(place.client.get(RESOURCE_CLAIM, "a", "claim"))["metadata"]["name"] == "claim"
    assert len(place.do(place.client.list(RESOURCE_CLAIM))) == 1
    assert place.do(place.client.list(RESOURCE_CLAIM, "b")) == []
    assert refused(place.client.get(POD, "a", "nobody")).is_not_found
    place.do(place.client.post(EVENT, "a", {}))
    place.do(place.client.patch(EVENT, "a", "e", {}))
    assert place.client.events == 1
    with pytest.raises(ConnectionFailed):
        place.do(place.client.call("GET", "/version"))


def test_informers_have_the_objects_themselves(place: Place) -> None:
    place.pod("p")

    async def look(client: Client) -> Informer[Any]:
        informer: StoreInformer[Any] = StoreInformer(client, POD, VirtualClock(), decode=lambda raw: None)
        informer.listeners.append(lambda type, obj, before: place.recorded.append((type, obj.name)))
        running = asyncio.create_task(informer.run())
        await informer.synced()
        running.cancel()
        return informer

    informer = place.do(look(place.client))
    assert informer.get("a", "p") is place.store.get(POD, "a", "p")
    assert place.recorded == [("ADDED", "p")]
