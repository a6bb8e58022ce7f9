"""The downward API: fields of a pod, its resources and its node for its containers."""

from __future__ import annotations

import json
import re
from typing import Final

from moorage.api.manifests import Manifest, annotations_of, labels_of
from moorage.api.quantity import parse_quantity
from moorage_cluster.nodes.workload import Host

_SUBSCRIPT: Final = re.compile(r"(?P<path>[^\[]+)\['(?P<key>.+)'\]")


class DownwardError(Exception):
    """A field or a resource that the downward API does not provide."""


def field_value(pod: Manifest, path: str, address: str, host: Host) -> str:
    """The value of a fieldRef; all labels or annotations are one `key="value"` line each."""
    meta, spec = pod["metadata"], pod["spec"]
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        path = subscript["path"]
    maps = {"metadata.labels": labels_of(pod), "metadata.annotations": annotations_of(pod)}
    if path in maps:
        if subscript is not None:
            return maps[path].get(subscript["key"], "")
        return "\n".join(f"{key}={json.dumps(value)}" for key, value in sorted(maps[path].items()))
    values: dict[str, str] = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"],
        "spec.nodeName": host.name,
        "spec.serviceAccountName": spec.get("serviceAccountName") or "",
        "status.hostIP": host.address,
        "status.hostIPs": host.address,
        "status.podIP": address,
        "status.podIPs": address,
    }
    if path not in values:
        raise DownwardError(f"unsupported fieldPath: {path}")
    return values[path]


def resource_value(pod: Manifest, ref: Manifest, container: Manifest | None, host: Host) -> str:
    """The value of a resourceFieldRef, rounded up to its divisor; a limit that is not set is the node's."""
    if name := ref.get("containerName"):
        spec = pod["spec"]
        containers = (*(spec.get("initContainers") or ()), *spec["containers"])
        container = next((each for each in containers if each["name"] == name), None)
    if container is None:
        raise DownwardError(f"container {ref.get('containerName')} not found")
    part, _, resource = ref["resource"].partition(".")
    amounts = (container.get("resources") or {}).get(part) or {}
    amount = amounts.get(resource) or (host.allocatable.get(resource) if part == "limits" else None) or "0"
    divisor = parse_quantity(str(ref.get("divisor") or "1")) or parse_quantity("1")
    return str(-(-parse_quantity(str(amount)) // divisor))
