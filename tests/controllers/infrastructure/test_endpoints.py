"""The addresses behind services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage.client.kinds import POD, SERVICE
from moorage_cluster.controllers.endpoints import ENDPOINTS, EndpointsController
from tests.controllers.harness import Harness
from tests.controllers.infrastructure.objects import pod

LABELS = {"app": "web"}


@pytest.fixture
def harness() -> Iterator[Harness]:
    with Harness(EndpointsController) as harness:
        harness.add_node("n")
        yield harness


def service(*ports: Manifest, **spec: Any) -> Manifest:
    wanted = list(ports) or [{"port": 80, "targetPort": 8080}]
    return {
        "metadata": {"name": "web", "namespace": "default", "labels": {"team": "a"}},
        "spec": {"selector": LABELS, "ports": wanted, **spec},
    }


def serve(harness: Harness, name: str, ip: str, ready: bool = True, **spec: Any) -> None:
    harness.bind(harness.create(POD, pod(name, LABELS, **spec)), "n")
    harness.run_pods(ready=ready, where=lambda each: each["metadata"]["name"] == name)
    harness.patch(POD, name, {"status": {"podIP": ip, "podIPs": [{"ip": ip}]}}, subresource="status")
    harness.advance(1)


def shown(harness: Harness) -> list[tuple[list[str], list[str], list[int]]]:
    """Ready addresses, others, and ports of every subset."""
    return [
        (
            [each["ip"] for each in subset.get("addresses", [])],
            [each["ip"] for each in subset.get("notReadyAddresses", [])],
            [each["port"] for each in subset.get("ports", [])],
        )
        for subset in harness.get(ENDPOINTS, "web").get("subsets", [])
    ]


def test_a_service_shows_its_pods(harness: Harness) -> None:
    harness.create(SERVICE, service())
    assert shown(harness) == []
    serve(harness, "p", "10.0.0.2")
    serve(harness, "q", "10.0.0.1")
    serve(harness, "r", "10.0.0.3", ready=False)
    assert shown(harness) == [(["10.0.0.1", "10.0.0.2"], ["10.0.0.3"], [8080])]
    found = harness.get(ENDPOINTS, "web")
    assert found["metadata"]["labels"] == {
        "team": "a",
        "endpoints.kubernetes.io/managed-by": "endpoint-controller",
    }
    first = found["subsets"][0]["addresses"][0]
    assert (first["nodeName"], first["targetRef"]["name"]) == ("n", "q")
    harness.delete(POD, "q")
    harness.advance(1)
    assert shown(harness) == [(["10.0.0.2"], ["10.0.0.3"], [8080])]
    harness.patch(POD, "p", {"metadata": {"labels": {"app": "other"}}})
    harness.advance(1)
    assert shown(harness) == [([], ["10.0.0.3"], [8080])]


def test_ports_may_have_names_that_each_pod_explains(harness: Harness) -> None:
    def offering(*ports: tuple[str, int]) -> list[Manifest]:
        named = [{"name": name, "containerPort": number} for name, number in ports]
        return [{"name": "main", "image": "registry.example/app:1", "ports": named}]

    harness.create(
        SERVICE,
        service(
            {"name": "http", "port": 80, "targetPort": "http"},
            {"name": "stats", "port": 90, "targetPort": "stats"},
        ),
    )
    serve(harness, "p", "10.0.0.1", containers=offering(("http", 8080)))
    serve(harness, "q", "10.0.0.2", containers=offering(("http", 8080), ("stats", 9090)))
    assert shown(harness) == [(["10.0.0.1", "10.0.0.2"], [], [8080]), (["10.0.0.2"], [], [9090])]


def test_a_service_may_want_also_what_is_not_ready(harness: Harness) -> None:
    harness.create(SERVICE, service(publishNotReadyAddresses=True))
    serve(harness, "p", "10.0.0.1", ready=False)
    assert shown(harness) == [(["10.0.0.1"], [], [8080])]


def test_a_headless_service_is_marked_and_names_its_hosts(harness: Harness) -> None:
    harness.create(SERVICE, service(clusterIP="None"))
    serve(harness, "p", "10.0.0.1", hostname="p", subdomain="web")
    found = harness.get(ENDPOINTS, "web")
    assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    assert found["subsets"][0]["addresses"][0]["hostname"] == "p"


def test_endpoints_go_with_their_service(harness: Harness) -> None:
    harness.create(SERVICE, service())
    harness.delete(SERVICE, "web")
    assert harness.find(ENDPOINTS, "web") is None


def test_endpoints_of_a_service_without_selector_are_the_users(harness: Harness) -> None:
    mine = {
        "metadata": {"name": "web", "namespace": "default"},
        "subsets": [{"addresses": [{"ip": "10.9.9.9"}]}],
    }
    harness.create(ENDPOINTS, mine)
    by_hand = service()
    del by_hand["spec"]["selector"]
    harness.create(SERVICE, by_hand)
    assert shown(harness) == [(["10.9.9.9"], [], [])]
    harness.delete(SERVICE, "web")
    assert shown(harness) == [(["10.9.9.9"], [], [])]
