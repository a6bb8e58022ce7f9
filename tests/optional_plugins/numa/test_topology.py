"""What NodeResourceTopology objects say, and which requests are pinned."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.decode import convert, decode_object
from moorage.optional_plugins.numa.requests import requests_of
from moorage.optional_plugins.numa.topology import NodeResourceTopology, zones_of
from tests.builders import make_pod
from tests.optional_plugins.numa.zones import GPU, guaranteed, limited, topology, topology_manifest, zone


def obj(**fields: Any) -> NodeResourceTopology:
    return convert({"metadata": {"name": "n"}, **fields}, NodeResourceTopology)


def attributes(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


CONFIGURATIONS: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "nothing": ({}, ("none", "container")),
    "the older field": ({"topologyPolicies": ["SingleNUMANodePodLevel"]}, ("single-numa-node", "pod")),
    "the first counts": (
        {"topologyPolicies": ["RestrictedContainerLevel", "SingleNUMANodePodLevel"]},
        ("restricted", "container"),
    ),
    "attributes count more": (
        {
            "topologyPolicies": ["SingleNUMANodePodLevel"],
            "attributes": attributes(topologyManagerPolicy="best-effort"),
        },
        ("best-effort", "pod"),
    ),
    "unknown values do not count": (
        {
            "topologyPolicies": ["Own"],
            "attributes": attributes(topologyManagerPolicy="strict", topologyManagerScope="rack"),
        },
        ("none", "container"),
    ),
}


@pytest.mark.parametrize(("fields", "expected"), CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_policy_and_scope(fields: dict[str, Any], expected: tuple[str, str]) -> None:
    zones = zones_of(obj(**fields))
    assert (zones.policy, zones.scope) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("16", 16), ("1", 8), ("-4", 8), ("many", 8), ("9" * 9, 1024), ("9" * 40, 8)]
)
def test_the_number_of_zones_that_are_allowed(text: str, expected: int) -> None:
    assert zones_of(topology("n", {}, topologyManagerMaxNUMANodes=text)).max_zones == expected


def test_zones_are_in_the_order_of_their_numbers() -> None:
    zones = [
        zone(10, {"cpu": "3"}, {0: 20, 10: 10}),
        zone(0, {"cpu": ("4", "3500m", "2500m"), GPU: "1"}, {0: 10}),
        {**zone(5, {"cpu": "9"}), "type": "Core"},
        {**zone(6, {"cpu": "9"}), "name": "node-six"},
    ]
    found = zones_of(obj(zones=zones))
    assert found.zone_count == 2
    assert found.resources == {
        "cpu": ((4000, 3000), (3500, 3000), (2500, 3000)),
        GPU: ((1, -1), (1, -1), (1, -1)),
    }
    assert found.distances.costs == ((10, 255), (20, 10))


def test_amounts_are_bounded() -> None:
    found = zones_of(topology("n", {"memory": ("9E", "1500m", "0.5")})).resources["memory"]
    assert found == ((1 << 52,), (1,), (0,))


def test_objects_of_the_older_version_are_read() -> None:
    manifest = {
        **topology_manifest("n", [zone(0, {"cpu": "1"})]),
        "apiVersion": "topology.node.k8s.io/v1alpha1",
    }
    decoded = decode_object(manifest)
    assert isinstance(decoded, NodeResourceTopology)
    assert zones_of(decoded).zone_count == 1


def test_what_a_pod_needs_at_the_worst_moment() -> None:
    pod = make_pod(
        "p",
        containers=[limited({"cpu": "2", "memory": "1"}), limited({"cpu": "1", "memory": "1"}, "other")],
        init_containers=[
            limited({"cpu": "1", "memory": "1"}, "side", restartPolicy="Always"),
            limited({"cpu": "5", "memory": "1"}, "init"),
        ],
    )
    assert requests_of(pod).pinned == {"cpu": 6000, "memory": 3}


def test_what_is_pinned() -> None:
    amounts = {
        "cpu": "2",
        "hugepages-1Gi": "1Gi",
        GPU: "1",
        "ephemeral-storage": "1Gi",
        "kubernetes.io/x": "1",
    }
    pinned = requests_of(guaranteed("p", amounts)).pinned
    assert pinned == {"memory": 1 << 30, "cpu": 2000, "hugepages-1Gi": 1 << 30, GPU: 1}
