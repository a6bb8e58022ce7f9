"""Capacity and claimed devices, counted by class as ResourceQuota counts them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage import Pod, ResourceClaim
from moorage.api.decode import convert
from moorage.optional_plugins.capacity.requests import devices_of
from tests.builders import make_pod
from tests.optional_plugins.capacity.quotas import Scene, node, quota, time

GPUS = "gpu.deviceclass.resource.k8s.io/devices"
NICS = "nic.deviceclass.resource.k8s.io/devices"


def exactly(device_class: str, count: int, mode: str = "ExactCount") -> dict[str, Any]:
    return {"deviceClassName": device_class, "allocationMode": mode, "count": count}


def claim(name: str, namespace: str, *requests: dict[str, Any]) -> ResourceClaim:
    devices = {"requests": list(requests)}
    return convert(
        {"metadata": {"name": name, "namespace": namespace}, "spec": {"devices": devices}}, ResourceClaim
    )


def gpus(name: str, namespace: str, count: int) -> ResourceClaim:
    return claim(name, namespace, {"name": "gpus", "exactly": exactly("gpu", count)})


def pod(name: str, namespace: str, *claims: str, on: str = "", age: float = 0.0) -> Pod:
    """A pod that names claims, or has one made for it (`made:NAME`)."""
    references, statuses = [], []
    for each in claims:
        _, made, actual = each.rpartition("made:")
        key = "resourceClaimTemplateName" if made else "resourceClaimName"
        references.append({"name": f"ref-{actual}", key: "template" if made else actual})
        if made:
            statuses.append({"name": f"ref-{actual}", "resourceClaimName": actual})
    status: dict[str, Any] = {"resourceClaimStatuses": statuses}
    if on:
        status["startTime"] = time(age)
    return make_pod(
        name, uid=name, namespace=namespace, on=on, requests={}, resource_claims=references, status=status
    )


COUNTS = {
    "by class": (
        [{"name": "a", "exactly": exactly("gpu", 2)}, {"name": "b", "exactly": exactly("nic", 1)}],
        {GPUS: 2, NICS: 1},
    ),
    "all there are": ([{"name": "a", "exactly": exactly("gpu", 0, "All")}], {GPUS: 32}),
    "the most of each class among alternatives": (
        [
            {
                "name": "a",
                "firstAvailable": [
                    {"name": "x", **exactly("gpu", 1)},
                    {"name": "y", **exactly("gpu", 3)},
                    {"name": "z", **exactly("nic", 2)},
                ],
            }
        ],
        {GPUS: 3, NICS: 2},
    ),
}


@pytest.mark.parametrize(("requests", "devices"), COUNTS.values(), ids=COUNTS)
def test_devices_are_counted(requests: list[dict[str, Any]], devices: dict[str, int]) -> None:
    objects = Scene(claim("one", "red", *requests)).cache.objects
    for name in ("one", "made:one"):
        assert devices_of(pod("p", "red", name), objects) == devices
    assert devices_of(pod("p", "red", "missing"), objects) == {}


def test_devices_are_limited_and_given_back() -> None:
    claims = [gpus(f"{team}{number}", team, 1) for team in ("red", "blue") for number in range(4)]
    there = [pod(f"r{number}", "red", f"red{number}", on="a", age=9 - number) for number in range(3)]
    teams = [quota(name, {GPUS: 2}, {GPUS: 3}) for name in ("red", "blue")]
    scene = Scene(node("a", 8), *teams, *claims, *there)
    decision = scene.decide(pod("new", "red", "made:red3"))
    assert f"ElasticQuota red/red: {GPUS}: used 3, requested 1, max 3" in decision.message
    assert scene.node_of(pod("b0", "blue", "blue0")) == "a"
    scene.cache.put(pod("b0", "blue", "blue0", on="a"))
    assert scene.evicted(pod("b1", "blue", "made:blue1")) == ["r2"]


def test_a_claim_may_be_deleted_before_its_pod() -> None:
    scene = Scene(node("a", 8), quota("red", {GPUS: 2}), gpus("one", "red", 2), gpus("two", "red", 2))
    scene.cache.put(pod("p", "red", "one", on="a"))
    assert scene.node_of(pod("new", "red", "two")) == ""
    scene.cache.remove(gpus("one", "red", 2))
    assert scene.node_of(pod("new", "red", "two")) == ""
    scene.cache.remove(pod("p", "red", "one", on="a"))
    assert scene.node_of(pod("new", "red", "two")) == "a"
