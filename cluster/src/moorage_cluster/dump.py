"""Importing a dump of a cluster into an API server: the output of `kubectl get ... -o yaml` of another one.

Objects get new uids, so references by uid are rewritten; owners that the dump does not contain are dropped,
or garbage collection would delete what they own. A volume and its claim keep each other's names and are bound
again: until the volume has the claim's new uid, a claim that is marked as bound would count as lost. Statuses
are written after their objects, through the status subresource.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moorage.api.decode import InputError
from moorage.api.manifests import Manifest, copy
from moorage.api.persistent_volumes import BIND_COMPLETED, BOUND_BY_CONTROLLER
from moorage.client.client import Client
from moorage.client.kinds import Kind
from moorage.http.errors import RequestError

_RANKS: Final = {
    kind: rank
    for rank, kind in enumerate(
        (
            "Namespace", "CustomResourceDefinition", "PriorityClass", "RuntimeClass", "StorageClass",
            "CSIDriver", "DeviceClass", "Node", "CSINode", "ResourceSlice", "PersistentVolume",
            "ServiceAccount", "LimitRange", "ConfigMap", "Secret", "ResourceClaimTemplate", "Service",
            "PodDisruptionBudget", "PodGroup", "Deployment", "CronJob", "StatefulSet", "DaemonSet",
            "ControllerRevision", "Job", "ReplicaSet", "ReplicationController", "Pod",
            "PersistentVolumeClaim", "ResourceClaim",
        )
    )
}  # fmt: skip
"""The order of creation by kind: referenced objects before the referring ones, owners before owned ones.

Claims may be owned by pods, and those for devices name the pods that use them.
"""
_NOT_IMPORTED: Final = frozenset(("Event", "Endpoints", "EndpointSlice", "Lease", "ResourceQuota"))
"""Kinds that are not imported: the cluster creates them itself, or they would block the import of others."""
_SERVER_OWNED_FIELDS: Final = (
    "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink", "managedFields",
    "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip

_BINDERS_OWN: Final = (BIND_COMPLETED, BOUND_BY_CONTROLLER)
"""Annotations of the binding between a claim and a volume."""
_JOBS_OWN: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
"""Labels by which a job finds its pods, unless it has a selector of its own."""
_BATCH: Final = 50
"""Objects created before other tasks get their turn on the loop."""


@dataclass(slots=True)
class ImportResult:
    """The result of an import."""

    created: int = 0
    there_already: int = 0
    unknown_kinds: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    """One line for each object that the server rejected."""


async def import_objects(client: Client, documents: Iterable[Any]) -> ImportResult:
    """Create all objects of a dump that the server accepts."""
    kinds = await served_kinds(client)
    manifests = sorted(
        flattened(documents, "dump"), key=lambda obj: _RANKS.get(str(obj.get("kind")), len(_RANKS))
    )
    brought = ImportResult()
    uids: dict[str, str] = {}
    for index, manifest in enumerate(manifests):
        if index % _BATCH == 0:
            await asyncio.sleep(0)
        kind = kinds.get((str(manifest.get("apiVersion")), str(manifest.get("kind"))))
        if manifest.get("kind") in _NOT_IMPORTED:
            continue
        if kind is None:
            named = [str(manifest[key]) for key in ("apiVersion", "kind") if manifest.get(key)]
            brought.unknown_kinds.add(" ".join(named) or "an object without a kind")
            continue
        try:
            await _import_one(client, kind, manifest, uids)
            brought.created += 1
        except RequestError as error:
            if error.already_exists:
                brought.there_already += 1
                continue
            brought.refused.append(error.message)
        if kind.name == "CustomResourceDefinition":
            kinds = await served_kinds(client)
    return brought


def flattened(documents: Iterable[Any], where: str) -> Iterator[Manifest]:
    """The objects of documents and of lists in them; InputErrors name `where`."""
    for document in documents:
        if not isinstance(document, Mapping):
            raise InputError(where, "expected objects, or a list of them")
        items = document.get("items")
        if isinstance(items, list) and str(document.get("kind", "")).endswith("List"):
            yield from flattened(items, where)
        else:
            yield dict(document)


async def _import_one(client: Client, kind: Kind, manifest: Manifest, uids: dict[str, str]) -> None:
    obj = copy(manifest)
    meta = obj.setdefault("metadata", {})
    old_uid = str(meta.get("uid", ""))
    for key in _SERVER_OWNED_FIELDS:
        meta.pop(key, None)
    owners = [owner for owner in meta.pop("ownerReferences", None) or () if owner.get("uid") in uids]
    if owners:
        meta["ownerReferences"] = [{**owner, "uid": uids[owner["uid"]]} for owner in owners]
    for key in _BINDERS_OWN:
        (meta.get("annotations") or {}).pop(key, None)
    _rewrite_reference((obj.get("spec") or {}).get("claimRef"), uids)
    labels = meta.get("labels") or {}
    labels.update((key, uids[labels[key]]) for key in _JOBS_OWN if labels.get(key) in uids)
    if kind.name == "Job":
        _forget_selector(obj.get("spec") or {})
    status = obj.pop("status", None)
    _rewrite_consumers(status, uids)
    namespace = meta.get("namespace", "") or ("default" if kind.namespaced else "")
    if kind.name == "Node":
        obj["status"] = status or {}
    stored = await client.create(kind, namespace, obj)
    if old_uid:
        uids[old_uid] = stored["metadata"]["uid"]
    if status and kind.name not in ("Node", "Namespace"):
        # A node has its status already, and a terminating namespace becomes active here.
        await _import_status(client, kind, stored, status)


async def _import_status(client: Client, kind: Kind, stored: Manifest, status: Manifest) -> None:
    try:
        await client.update(kind, {**stored, "status": status}, "status")
    except RequestError as error:
        if not error.is_not_found:  # Not every kind has a status subresource.
            raise


def _rewrite_reference(reference: Any, uids: Mapping[str, str]) -> None:
    """Replace the uid of a volume's claim by the new one; without one, the binder matches by name."""
    if isinstance(reference, dict) and "uid" in reference:
        new = uids.get(reference["uid"])
        if new:
            reference["uid"] = new
        else:
            del reference["uid"]
        reference.pop("resourceVersion", None)


def _rewrite_consumers(status: Any, uids: Mapping[str, str]) -> None:
    """Replace the uids of the pods that use a claim for devices; those that are not there do not use it."""
    users = status.get("reservedFor") if isinstance(status, dict) else None
    if isinstance(users, list):
        known = [each for each in users if isinstance(each, dict) and each.get("uid") in uids]
        status["reservedFor"] = [{**each, "uid": uids[each["uid"]]} for each in known]


def _forget_selector(job: Manifest) -> None:
    """Remove the labels with the job's uid, and the selector for them: the server generates new ones."""
    if job.get("manualSelector"):
        return
    job.pop("selector", None)
    labels = ((job.get("template") or {}).get("metadata") or {}).get("labels") or {}
    for key in _JOBS_OWN:
        labels.pop(key, None)


async def served_kinds(client: Client) -> dict[tuple[str, str], Kind]:
    """All kinds that the server serves and that can be created, by apiVersion and kind."""
    groups = await client.call("GET", "/apis")
    addresses = ["/api/v1"] + [
        f"/apis/{version['groupVersion']}" for group in groups["groups"] for version in group["versions"]
    ]
    found = {}
    for address in addresses:
        listed = await client.call("GET", address)
        group, _, version = listed["groupVersion"].rpartition("/")
        for resource in listed["resources"]:
            if "/" not in resource["name"] and "create" in resource["verbs"]:
                kind = Kind(group, version, resource["kind"], resource["name"], resource["namespaced"])
                found[kind.api_version, kind.name] = kind
    return found
