"""Bringing a cluster into an API server from a dump: what `kubectl get ... -o yaml` printed of another one.

Objects get new uids, so references by uid are rewritten; owners that the dump does not contain are dropped,
or garbage collection would delete what they own. A volume and its claim keep each other's names and are bound
anew: until the volume knows the claim's new uid, a claim that says that it is bound would count as lost.
Statuses are written after their objects, as their own subresource wants it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moorage.api.decode import InputError
from moorage.api.manifests import Manifest, copy
from moorage.client.client import Client
from moorage.client.kinds import Kind
from moorage.http.errors import RequestError

_RANKS: Final = {
    kind: rank
    for rank, kind in enumerate(
        (
            "Namespace", "CustomResourceDefinition", "PriorityClass", "RuntimeClass", "StorageClass",
            "CSIDriver", "DeviceClass", "Node", "CSINode", "ResourceSlice", "PersistentVolume",
            "ServiceAccount", "LimitRange", "ConfigMap", "Secret", "PersistentVolumeClaim",
            "ResourceClaimTemplate", "ResourceClaim", "Service", "PodDisruptionBudget", "PodGroup",
            "Deployment", "CronJob", "StatefulSet", "DaemonSet", "ControllerRevision", "Job", "ReplicaSet",
            "ReplicationController", "Pod",
        )
    )
}  # fmt: skip
"""Who comes first: what others name comes before them, owners before what they own."""
_NOT_BROUGHT: Final = frozenset(("Event", "Endpoints", "EndpointSlice", "Lease", "ResourceQuota"))
"""What a cluster makes again by itself, or what would stand in the way of bringing the rest."""
_SERVERS_OWN: Final = (
    "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink", "managedFields",
    "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip

_BINDERS_OWN: Final = ("pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller")
"""Annotations that say that a claim and a volume know each other."""
_JOBS_OWN: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
"""Labels by which a job finds its pods, unless it has a selector of its own."""
_BATCH: Final = 50
"""So many objects are created before others get their turn on the loop."""


@dataclass(slots=True)
class Brought:
    """What came of it."""

    created: int = 0
    there_already: int = 0
    unknown_kinds: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    """One line for each object that the server did not take."""


async def bring(client: Client, documents: Iterable[Any]) -> Brought:
    """Create all objects of a dump that the server takes."""
    kinds = await served_kinds(client)
    manifests = sorted(
        flattened(documents, "dump"), key=lambda obj: _RANKS.get(str(obj.get("kind")), len(_RANKS))
    )
    brought = Brought()
    uids: dict[str, str] = {}
    for index, manifest in enumerate(manifests):
        if index % _BATCH == 0:
            await asyncio.sleep(0)
        kind = kinds.get((str(manifest.get("apiVersion")), str(manifest.get("kind"))))
        if manifest.get("kind") in _NOT_BROUGHT:
            continue
        if kind is None:
            named = [str(manifest[key]) for key in ("apiVersion", "kind") if manifest.get(key)]
            brought.unknown_kinds.add(" ".join(named) or "an object without a kind")
            continue
        try:
            await _bring_one(client, kind, manifest, uids)
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
    """The objects of documents, lists taken apart; or InputError that says where they are from."""
    for document in documents:
        if not isinstance(document, Mapping):
            raise InputError(where, "expected objects, or a list of them")
        items = document.get("items")
        if isinstance(items, list) and str(document.get("kind", "")).endswith("List"):
            yield from flattened(items, where)
        else:
            yield dict(document)


async def _bring_one(client: Client, kind: Kind, manifest: Manifest, uids: dict[str, str]) -> None:
    obj = copy(manifest)
    meta = obj.setdefault("metadata", {})
    old_uid = str(meta.get("uid", ""))
    for key in _SERVERS_OWN:
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
    namespace = meta.get("namespace", "") or ("default" if kind.namespaced else "")
    if kind.name == "Node":
        obj["status"] = status or {}
    stored = await client.create(kind, namespace, obj)
    if old_uid:
        uids[old_uid] = stored["metadata"]["uid"]
    if status and kind.name not in ("Node", "Namespace"):
        # A node has its status already, and a namespace that was going is here to stay.
        await _bring_status(client, kind, stored, status)


async def _bring_status(client: Client, kind: Kind, stored: Manifest, status: Manifest) -> None:
    try:
        await client.update(kind, {**stored, "status": status}, "status")
    except RequestError as error:
        if not error.is_not_found:  # Not every kind has a status of its own.
            raise


def _rewrite_reference(reference: Any, uids: Mapping[str, str]) -> None:
    """A volume's claim has another uid here; an unknown one is left for the binder to find by name."""
    if isinstance(reference, dict) and "uid" in reference:
        new = uids.get(reference["uid"])
        if new:
            reference["uid"] = new
        else:
            del reference["uid"]
        reference.pop("resourceVersion", None)


def _forget_selector(job: Manifest) -> None:
    """Let the server choose the labels that contain the job's uid, and the selector for them, again."""
    if job.get("manualSelector"):
        return
    job.pop("selector", None)
    labels = ((job.get("template") or {}).get("metadata") or {}).get("labels") or {}
    for key in _JOBS_OWN:
        labels.pop(key, None)


async def served_kinds(client: Client) -> dict[tuple[str, str], Kind]:
    """All kinds that the server knows and that can be created, by apiVersion and kind."""
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
