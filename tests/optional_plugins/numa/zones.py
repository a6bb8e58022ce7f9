"""NodeResourceTopology objects and pods from short arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.optional_plugins.numa.topology import NodeResourceTopology
from tests.builders import Manifest, make_pod

GPU = "example.com/gpu"
HUGE = "hugepages-2Mi"
STARTED = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}

Amount = str | tuple[str, str, str]
"""What a zone has of a resource: one amount, or capacity, allocatable and available."""


def zone(number: int, resources: Mapping[str, Amount], costs: Mapping[int, int] | None = None) -> Manifest:
    listed = []
    for name, amount in resources.items():
        capacity, allocatable, available = (amount,) * 3 if isinstance(amount, str) else amount
        listed.append(
            {"name": name, "capacity": capacity, "allocatable": allocatable, "available": available}
        )
    return {
        "name": f"node-{number}",
        "type": "Node",
        "resources": listed,
        "costs": [{"name": f"node-{other}", "value": value} for other, value in (costs or {}).items()],
    }


def topology_manifest(
    name: str,
    zones: Sequence[Manifest],
    policy: str = "single-numa-node",
    scope: str = "container",
    **attributes: str,
) -> Manifest:
    given = {"topologyManagerPolicy": policy, "topologyManagerScope": scope, **attributes}
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [{"name": key, "value": value} for key, value in given.items()],
        "zones": list(zones),
    }


def topology(
    name: str,
    *zones: Mapping[str, Amount],
    policy: str = "single-numa-node",
    scope: str = "container",
    **attributes: str,
) -> NodeResourceTopology:
    """An object with zones that are numbered from 0."""
    made = [zone(number, each) for number, each in enumerate(zones)]
    return convert(topology_manifest(name, made, policy, scope, **attributes), NodeResourceTopology)


def limited(resources: Mapping[str, str], name: str = "main", **fields: Any) -> Manifest:
    """A container whose limits are its requests."""
    given = {"requests": dict(resources), "limits": dict(resources)}
    return {"name": name, "image": "app", "resources": given, **fields}


def burstable(resources: Mapping[str, str], name: str = "main") -> Manifest:
    """A container that requests a little cpu more than nothing, and devices."""
    devices = {key: value for key, value in resources.items() if "/" in key}
    return {"name": name, "image": "app", "resources": {"requests": dict(resources), "limits": devices}}


def guaranteed(name: str, *containers: Mapping[str, str], **fields: Any) -> Pod:
    """A pod with containers whose limits are their requests; without memory, they get 1Gi."""
    made = [limited({"memory": "1Gi", **each}, f"c{number}") for number, each in enumerate(containers)]
    return make_pod(name, uid=name, containers=made, **fields)
