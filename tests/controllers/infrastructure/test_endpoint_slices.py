"""The addresses behind services, in slices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moorage.api.manifests import Manifest
from moorage.client.kinds import ENDPOINT_SLICE, POD, SERVICE
from moorage_cluster.controllers import endpoint_slices
from moorage_cluster.controllers.endpoint_slices import EndpointSliceController
from tests.controllers.harness import Harness
from tests.controllers.infrastructure.test_endpoints import serve, service


@pytest.fixture
def harness() -> Iterator[Harness]:
    with Harness(EndpointSliceController) as harness:
        harness.add_node("n", {"topology.kubernetes.io/zone": "z"})
        yield harness


def shown(harness: Harness) -> list[tuple[list[str], list[int]]]:
    """The addresses and the ports of every slice; those that are not ready in brackets."""
    return sorted(
        (
            [
                each["addresses"][0] if each["conditions"]["ready"] else f"({each['addresses'][0]})"
                for each in found["endpoints"]
            ],
            [port["port"] for port in found["ports"]],
        )
        for found in harness.list(ENDPOINT_SLICE)
    )


def only(harness: Harness) -> Manifest:
    (found,) = harness.list(ENDPOINT_SLICE)
    return found


def test_a_service_shows_its_pods(harness: Harness) -> None:
    made = harness.create(SERVICE, service())
    assert shown(harness) == [([], [])]
    serve(harness, "p", "10.0.0.2")
    serve(harness, "q", "10.0.0.1", ready=False)
    assert shown(harness) == [(["10.0.0.2", "(10.0.0.1)"], [8080])]
    found = only(harness)
    meta = found["metadata"]
    assert meta["name"].startswith("web-")
    assert meta["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert meta["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert (found["addressType"], found["ports"]) == (
        "IPv4",
        [{"name": "", "port": 8080, "protocol": "TCP"}],
    )
    pod = harness.get(POD, "p")
    assert found["endpoints"][0] == {
        "addresses": ["10.0.0.2"],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "nodeName": "n",
        "zone": "z",
        "targetRef": {
            "kind": "Pod",
            "namespace": "default",
            "name": "p",
            "uid": pod["metadata"]["uid"],
        },
    }


def test_pods_on_their_way_out_are_shown_until_they_are_gone(harness: Harness) -> None:
    harness.create(SERVICE, service())
    serve(harness, "p", "10.0.0.1")
    harness.delete(POD, "p")
    harness.advance(1)
    conditions = {"ready": False, "serving": True, "terminating": True}
    assert only(harness)["endpoints"][0]["conditions"] == conditions
    harness.finish_deletions()
    harness.advance(1)
    assert shown(harness) == [([], [])]


def test_pods_with_other_ports_are_in_other_slices(harness: Harness) -> None:
    harness.create(SERVICE, service({"name": "http", "port": 80, "targetPort": "http"}))
    for name, ip, number in (("p", "10.0.0.1", 8080), ("q", "10.0.0.2", 9090)):
        ports = [{"name": "http", "containerPort": number}]
        serve(harness, name, ip, containers=[{"name": "main", "image": "app:1", "ports": ports}])
    assert shown(harness) == [(["10.0.0.1"], [8080]), (["10.0.0.2"], [9090])]


def test_many_pods_are_in_several_slices(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_slices, "MAX_ENDPOINTS", 2)
    harness.create(SERVICE, service())
    for number in range(3):
        serve(harness, f"p{number}", f"10.0.0.{number + 1}")
    assert shown(harness) == [(["10.0.0.1", "10.0.0.2"], [8080]), (["10.0.0.3"], [8080])]
    harness.delete(POD, "p0", grace_seconds=0)
    harness.advance(1)
    assert shown(harness) == [(["10.0.0.2", "10.0.0.3"], [8080])]


def test_a_slice_that_is_deleted_comes_back_and_goes_with_its_service(harness: Harness) -> None:
    harness.create(SERVICE, service(clusterIP="None"))
    assert only(harness)["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    serve(harness, "p", "10.0.0.1")
    harness.delete(ENDPOINT_SLICE, only(harness)["metadata"]["name"])
    assert shown(harness) == [(["10.0.0.1"], [8080])]
    harness.delete(SERVICE, "web")
    assert harness.list(ENDPOINT_SLICE) == []


def test_slices_of_users_are_left_alone(harness: Harness) -> None:
    mine = {"metadata": {"name": "mine", "namespace": "default"}, "addressType": "IPv4"}
    harness.create(ENDPOINT_SLICE, mine)
    harness.create(SERVICE, service(selector=None))
    assert harness.names(ENDPOINT_SLICE) == ["mine"]
