"""Finalizers that protect objects from deletion while others use them."""

from __future__ import annotations

from moorage.api.manifests import Manifest
from moorage.client.kinds import Kind
from moorage_cluster.controllers.cluster import Cluster


def is_being_deleted(obj: Manifest, finalizer: str) -> bool:
    """Whether only finalizers keep an object, and this is one of them."""
    meta = obj["metadata"]
    return "deletionTimestamp" in meta and finalizer in (meta.get("finalizers") or ())


async def protect(cluster: Cluster, kind: Kind, obj: Manifest, finalizer: str) -> None:
    """Add a finalizer to an object that lacks it and is not being deleted."""
    finalizers = obj["metadata"].get("finalizers") or []
    if "deletionTimestamp" not in obj["metadata"] and finalizer not in finalizers:
        await _write(cluster, kind, obj, [*finalizers, finalizer])


async def unprotect(cluster: Cluster, kind: Kind, obj: Manifest, finalizer: str) -> None:
    """Remove a finalizer from an object that has it."""
    await _write(cluster, kind, obj, [each for each in obj["metadata"]["finalizers"] if each != finalizer])


async def _write(cluster: Cluster, kind: Kind, obj: Manifest, finalizers: list[str]) -> None:
    version = obj["metadata"]["resourceVersion"]
    patch = {"metadata": {"finalizers": finalizers, "resourceVersion": version}}
    await cluster.patch(kind, obj, patch)
