"""Slices that mirror the Endpoints of services without selectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage.client.kinds import ENDPOINT_SLICE, SERVICE
from moorage_cluster.controllers.endpoint_slice_mirroring import EndpointSliceMirroringController
from moorage_cluster.controllers.endpoints import ENDPOINTS
from tests.controllers.harness import Harness
from tests.controllers.infrastructure.test_endpoint_slices import shown

SPEC = {"ports": [{"name": "http", "port": 80}]}
HTTP = {"name": "http", "port": 80, "protocol": "TCP"}
HTTPS = {"name": "https", "port": 443, "protocol": "TCP"}


@pytest.fixture
def harness() -> Iterator[Harness]:
    with Harness(EndpointSliceMirroringController) as harness:
        yield harness


def subset(*ips: str, ports: tuple[Manifest, ...] = (HTTP,), **more: Any) -> Manifest:
    return {"addresses": [{"ip": ip} for ip in ips], "ports": list(ports), **more}


def write(harness: Harness, *subsets: Manifest, **meta: Any) -> Manifest:
    harness.create(SERVICE, {"metadata": {"name": "web"}, "spec": SPEC})
    return harness.create(ENDPOINTS, {"metadata": {"name": "web", **meta}, "subsets": list(subsets)})


def test_what_users_write_is_mirrored(harness: Harness) -> None:
    kept = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}
    made = write(
        harness,
        subset("10.1.2.3", notReadyAddresses=[{"ip": "10.1.2.4", "hostname": "h"}]),
        labels={"team": "a"},
        annotations=kept,
    )
    assert shown(harness) == [(["10.1.2.3", "(10.1.2.4)"], [80])]
    (found,) = harness.list(ENDPOINT_SLICE)
    meta = found["metadata"]
    assert meta["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    assert meta["annotations"] == {"a": "b"}
    assert meta["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert (found["addressType"], found["endpoints"][1]["hostname"]) == ("IPv4", "h")


def test_changes_and_the_end_are_mirrored(harness: Harness) -> None:
    made = write(harness, subset("10.1.2.3"))
    (before,) = harness.list(ENDPOINT_SLICE)
    harness.update(ENDPOINTS, {**made, "subsets": [subset("10.2.3.4")]})
    (after,) = harness.list(ENDPOINT_SLICE)
    assert shown(harness) == [(["10.2.3.4"], [80])]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    harness.delete(ENDPOINTS, "web")
    assert shown(harness) == []


def test_an_address_in_two_subsets_has_the_ports_of_both(harness: Harness) -> None:
    write(harness, subset("10.0.0.1", "10.0.0.2"), subset("10.0.0.1", ports=(HTTPS,)), subset("fd00::1"))
    assert shown(harness) == [(["10.0.0.1"], [80, 443]), (["10.0.0.2"], [80]), (["fd00::1"], [80])]


NOT_MIRRORED: dict[str, dict[str, dict[str, str]]] = {
    "by a label": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
    "for elections": {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}},
}


@pytest.mark.parametrize("meta", NOT_MIRRORED.values(), ids=NOT_MIRRORED)
def test_some_are_not_mirrored(harness: Harness, meta: dict[str, dict[str, str]]) -> None:
    write(harness, subset("10.0.0.1"), **meta)
    assert shown(harness) == []


def test_a_service_that_selects_pods_ends_the_mirroring(harness: Harness) -> None:
    write(harness, subset("10.0.0.1"))
    service = harness.get(SERVICE, "web")
    harness.update(SERVICE, {**service, "spec": {**service["spec"], "selector": {"app": "web"}}})
    assert shown(harness) == []
