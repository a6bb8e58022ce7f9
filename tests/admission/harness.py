"""A small cluster in dicts, and the builders of what is written to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from moorage.admission.attributes import Attributes, Operation
from moorage.admission.plugin import Call
from moorage.admission.users import User
from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.resources import APIResource

ADMIN = User("admin", ("system:masters",))


class World:
    """A Reader of objects in dicts."""

    def __init__(self, **objects: Iterable[Manifest]) -> None:
        self._objects: dict[str, dict[tuple[str, str], Manifest]] = {}
        for kind, items in objects.items():
            for item in items:
                self.add(STORAGES[kind], item)

    def add(self, storage: str, obj: Manifest) -> None:
        metadata = obj["metadata"]
        self._objects.setdefault(storage, {})[metadata.get("namespace", ""), metadata["name"]] = obj

    def find(self, storage: str, namespace: str, name: str) -> Manifest | None:
        return self._objects.get(storage, {}).get((namespace, name))

    def all(self, storage: str, namespace: str | None = None) -> Iterable[Manifest]:
        kept = self._objects.get(storage, {})
        return [obj for (where, _), obj in kept.items() if namespace in (None, where)]


STORAGES = {
    "namespaces": "/namespaces",
    "nodes": "/nodes",
    "pods": "/pods",
    "accounts": "/serviceaccounts",
    "limit_ranges": "/limitranges",
    "quotas": "/resourcequotas",
    "claims": "/persistentvolumeclaims",
    "services": "/services",
    "secrets": "/secrets",
    "deployments": "apps/deployments",
    "priority_classes": "scheduling.k8s.io/priorityclasses",
    "runtime_classes": "node.k8s.io/runtimeclasses",
    "storage_classes": "storage.k8s.io/storageclasses",
    "device_claims": "resource.k8s.io/resourceclaims",
}


def resource(storage: str, *, namespaced: bool = True) -> APIResource:
    group, _, plural = storage.partition("/")
    return APIResource(group, "v1", plural.capitalize(), plural, namespaced)


def named(name: str, namespace: str = "", **fields: Any) -> Manifest:
    metadata: Manifest = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"metadata": metadata, **fields}


def namespace(name: str = "here", phase: str = "Active") -> Manifest:
    return named(name, status={"phase": phase})


def container(name: str = "c", **fields: Any) -> Manifest:
    return {"name": name, "image": "i", **fields}


def asking(name: str = "c", *, limits: Manifest | None = None, **requests: str) -> Manifest:
    """A container with requests, and limits if given."""
    resources: Manifest = {"requests": requests} if requests else {}
    if limits:
        resources["limits"] = limits
    return container(name, resources=resources)


def pod(*containers: Manifest, name: str = "p", **spec: Any) -> Manifest:
    return named(name, "here", spec={"containers": list(containers or (container(),)), **spec})


def write(
    obj: Manifest,
    storage: str = "/pods",
    operation: Operation = "CREATE",
    *,
    subresource: str = "",
    old: Manifest | None = None,
    namespaced: bool = True,
) -> Attributes:
    metadata = obj["metadata"]
    where = metadata.get("namespace", "here" if namespaced else "")
    return Attributes(
        operation,
        resource(storage, namespaced=namespaced),
        subresource,
        where if namespaced else "",
        metadata.get("name", ""),
        obj,
        old,
        ADMIN,
    )


def update(obj: Manifest, old: Manifest, storage: str = "/pods", *, subresource: str = "") -> Attributes:
    return write(obj, storage, "UPDATE", subresource=subresource, old=old)


def refused(admit: Callable[..., None], attributes: Attributes, harness: World) -> ApiError:
    """The error with which a write is refused."""
    with pytest.raises(ApiError) as caught:
        admit(attributes, harness)
    return caught.value


def call_of(attributes: Attributes) -> Call:
    return Call(attributes.operation, attributes.resource.storage, attributes.subresource)
