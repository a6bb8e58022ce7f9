"""Pods of controllers: their state, and creating and deleting them with the usual events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from moorage.api.conditions import find_condition, is_ready
from moorage.api.manifests import Manifest, annotations_of, copy, labels_of, moment, status_of
from moorage.client.kinds import POD
from moorage.http.errors import RequestError
from moorage_cluster.controllers.cluster import Cluster, owner_reference

BURST: Final = 500
"""Maximum number of pods that are created or deleted in one reconciliation of an owner."""

_FINISHED = ("Succeeded", "Failed")


def phase_of(pod: Manifest) -> str:
    """A pod's phase; a pod without one is pending."""
    return str(status_of(pod).get("phase") or "Pending")


def is_finished(pod: Manifest) -> bool:
    """Whether a pod has succeeded or failed."""
    return phase_of(pod) in _FINISHED


def is_deleted(obj: Manifest) -> bool:
    """Whether an object is being deleted."""
    return "deletionTimestamp" in obj["metadata"]


def is_active(pod: Manifest) -> bool:
    """Whether a pod counts as a replica: it is neither finished nor being deleted."""
    return not is_finished(pod) and not is_deleted(pod)


def is_terminating(pod: Manifest) -> bool:
    """Whether a pod is being deleted and not finished."""
    return is_deleted(pod) and not is_finished(pod)


def node_of(pod: Manifest) -> str:
    """The node a pod is bound to, or empty."""
    return str(pod["spec"].get("nodeName") or "")


def ready_since(pod: Manifest) -> datetime | None:
    """When a pod became ready; None if it is not, or its condition has no time."""
    ready = find_condition(status_of(pod), "Ready")
    if ready is None or ready.get("status") != "True" or not ready.get("lastTransitionTime"):
        return None
    return moment(ready["lastTransitionTime"])


def is_available(pod: Manifest, min_ready_seconds: int, now: datetime) -> bool:
    """Whether a pod has been ready for long enough."""
    if not is_ready(pod):
        return False
    if min_ready_seconds == 0:
        return True
    since = ready_since(pod)
    return since is not None and since + timedelta(seconds=min_ready_seconds) <= now


def next_available_seconds(pods: Iterable[Manifest], min_ready_seconds: int, now: datetime) -> float | None:
    """Seconds until the next ready pod becomes available; None if there is none."""
    if min_ready_seconds <= 0:
        return None
    waits = [
        (since + timedelta(seconds=min_ready_seconds) - now).total_seconds()
        for since in map(ready_since, pods)
        if since is not None
    ]
    return min((wait for wait in waits if wait > 0), default=None)


def created_at(obj: Manifest) -> datetime:
    """When an object was created."""
    return moment(obj["metadata"]["creationTimestamp"])


def pod_from_template(owner: Manifest, template: Manifest) -> Manifest:
    """A pod of an owner from its template, without a name."""
    given = template.get("metadata") or {}
    meta: Manifest = {
        "generateName": f"{owner['metadata']['name']}-",
        "namespace": owner["metadata"]["namespace"],
        "labels": dict(labels_of(template)),
        "annotations": dict(annotations_of(template)),
        "ownerReferences": [owner_reference(owner)],
    }
    if given.get("finalizers"):
        meta["finalizers"] = list(given["finalizers"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": copy(template["spec"])}


def is_namespace_terminating(error: RequestError) -> bool:
    """Whether a request was rejected because its namespace is being deleted; a retry is useless."""
    return any(cause.get("reason") == "NamespaceTerminating" for cause in error.details.get("causes") or [])


async def create_pod(cluster: Cluster, owner: Manifest, pod: Manifest, component: str) -> Manifest | None:
    """Create a pod and record an event; None if the namespace is being deleted."""
    try:
        made = await cluster.create(POD, owner["metadata"]["namespace"], pod)
    except RequestError as error:
        if is_namespace_terminating(error):
            return None
        await cluster.record_event(owner, "Warning", "FailedCreate", f"Error creating: {error}", component)
        raise
    await cluster.record_event(
        owner, "Normal", "SuccessfulCreate", f"Created pod: {made['metadata']['name']}", component
    )
    return made


async def delete_pod(cluster: Cluster, owner: Manifest, pod: Manifest, component: str) -> None:
    """Begin to delete a pod and record an event."""
    try:
        await cluster.delete(POD, pod)
    except RequestError as error:
        await cluster.record_event(owner, "Warning", "FailedDelete", f"Error deleting: {error}", component)
        raise
    await cluster.record_event(
        owner, "Normal", "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}", component
    )


async def slow_start(count: int, do: Callable[[int], Awaitable[object]]) -> RequestError | None:
    """Call a function `count` times, in batches of 1, 2, 4 and so on; after a failure there is no next batch.

    What fails for all, such as an exhausted quota, fails once instead of `count` times.
    """
    done, size = 0, 1
    while done < count:
        batch = range(done, min(done + size, count))
        if error := await together(do(index) for index in batch):
            return error
        done, size = batch.stop, size * 2
    return None


async def together(work: Iterable[Awaitable[object]]) -> RequestError | None:
    """Await several things concurrently; returns the first error, if any."""
    results = await asyncio.gather(*work, return_exceptions=True)
    refusal: RequestError | None = None
    for result in results:
        if isinstance(result, RequestError):
            refusal = refusal or result
        elif isinstance(result, BaseException):
            raise result
    return refusal
