"""Which objects belong to an owner: by their controller reference, which changes with labels and selectors.

Objects without controller that an owner's selector matches are adopted; those it no longer matches are
released. Orphans are indexed by label and found by one of the selector's labels, not by scanning all pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from moorage.api.manifests import Manifest, labels_of
from moorage.api.selectors import NOTHING, Selector, valid_selector
from moorage.client.informer import EventType
from moorage.client.kinds import POD, Kind
from moorage.http.errors import RequestError
from moorage_cluster.controllers.cluster import Cluster, controller_of, owner_reference
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.pods import is_deleted

Keep = Callable[[Manifest], bool]


def selector_of(owner: Manifest) -> Manifest:
    """An owner's selector as a label selector; replication controllers have plain labels instead."""
    selector: Manifest = owner["spec"].get("selector") or {}
    if owner["kind"] == "ReplicationController":
        return {"matchLabels": selector}
    return selector


def ready_selector(selector: Manifest) -> Selector:
    """A compiled selector; an empty one would own everything, so it matches nothing, like an invalid one."""
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return NOTHING
    return valid_selector(selector)


def selects_nothing(owner: Manifest) -> bool:
    """Whether an owner's selector is empty or invalid: it would never match its own pods, and create more."""
    return ready_selector(selector_of(owner)) is NOTHING


def selects_labels(owner: Manifest, labels: Mapping[str, str]) -> bool:
    """Whether an owner's selector matches labels; fast if it does not."""
    selector = selector_of(owner)
    wanted: dict[str, str] = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return ready_selector(selector).matches(labels)


def watch_pods(controller: Controller, owner_kind: Kind) -> None:
    """Enqueue the owner of a pod whenever the pod changes, or those that may adopt it if it has none."""
    cluster = controller.cluster
    cluster.owned(POD)

    def enqueue(type: EventType, pod: Manifest, before: Manifest | None) -> None:
        owner, owner_before = controller_of(pod), controller_of(before) if before is not None else None
        for each in (owner, owner_before if owner_before != owner else None):
            if each is None or (each["apiVersion"], each["kind"]) != (
                owner_kind.api_version,
                owner_kind.name,
            ):
                continue
            controller.enqueue(pod["metadata"]["namespace"], each["name"])

    cluster.informer(POD).listeners.append(enqueue)
    watch_orphans(controller, POD, owner_kind)


def watch_orphans(controller: Controller, kind: Kind, owner_kind: Kind) -> None:
    """Enqueue the owners that may adopt an object, when it appears or changes without having a controller."""
    cluster = controller.cluster
    cluster.orphans(kind)
    owners = cluster.within(owner_kind)

    def enqueue(type: EventType, obj: Manifest, before: Manifest | None) -> None:
        if type == "DELETED" or controller_of(obj) or is_deleted(obj):
            return
        labels = labels_of(obj)
        if before is not None and not controller_of(before) and labels_of(before) == labels:
            return
        namespace = obj["metadata"].get("namespace", "")
        for owner in owners.get(namespace):
            if selects_labels(owner, labels):
                controller.enqueue(namespace, owner["metadata"]["name"])

    cluster.informer(kind).listeners.append(enqueue)


async def claim(
    cluster: Cluster,
    owner_kind: Kind,
    owner: Manifest,
    kind: Kind,
    keep: Keep | None = None,
    finalizers: tuple[str, ...] = (),
) -> list[Manifest]:
    """An owner's objects of a kind, after adopting (with finalizers) and releasing.

    Only those to `keep` are considered.
    """
    selector = ready_selector(selector_of(owner))
    uid = owner["metadata"]["uid"]
    claimed: list[Manifest] = []
    for obj in cluster.owned(kind).get(uid):
        if keep is not None and not keep(obj):
            continue
        if selector.matches(labels_of(obj)):
            claimed.append(obj)
        elif not is_deleted(owner):
            await _release(cluster, kind, obj, uid)
    if is_deleted(owner):
        return claimed
    wanted = [
        obj
        for obj in _orphans(cluster, kind, owner)
        if (keep is None or keep(obj)) and not is_deleted(obj) and selector.matches(labels_of(obj))
    ]
    if wanted and await _still_wanted(cluster, owner_kind, owner):
        for obj in wanted:
            adopted = await _adopt(cluster, kind, obj, owner, finalizers)
            if adopted is not None:
                claimed.append(adopted)
    return claimed


def _orphans(cluster: Cluster, kind: Kind, owner: Manifest) -> Iterable[Manifest]:
    namespace = owner["metadata"]["namespace"]
    wanted: dict[str, str] = selector_of(owner).get("matchLabels") or {}
    for key, value in wanted.items():
        return cluster.orphans(kind).get(f"{namespace}/{key}={value}")
    return cluster.orphans(kind).get(namespace)


async def _still_wanted(cluster: Cluster, owner_kind: Kind, owner: Manifest) -> bool:
    """Whether the owner still exists, by a live read: what a deleted owner adopts would be deleted too."""
    meta = owner["metadata"]
    try:
        fresh = await cluster.client.get(owner_kind, meta["namespace"], meta["name"])
    except RequestError as error:
        if error.is_not_found:
            return False
        raise
    return bool(fresh["metadata"]["uid"] == meta["uid"] and not is_deleted(fresh))


async def _adopt(
    cluster: Cluster, kind: Kind, obj: Manifest, owner: Manifest, finalizers: tuple[str, ...]
) -> Manifest | None:
    meta: Manifest = {"ownerReferences": [owner_reference(owner)], "uid": obj["metadata"]["uid"]}
    if finalizers:
        meta["finalizers"] = list(finalizers)
    return await _changed(cluster, kind, obj, {"metadata": meta})


async def _release(cluster: Cluster, kind: Kind, obj: Manifest, owner_uid: str) -> None:
    gone = [{"$patch": "delete", "uid": owner_uid}]
    await _changed(cluster, kind, obj, {"metadata": {"ownerReferences": gone, "uid": obj["metadata"]["uid"]}})


async def _changed(cluster: Cluster, kind: Kind, obj: Manifest, change: Manifest) -> Manifest | None:
    """The object with a change; None if it is gone or has a controller by now."""
    try:
        return await cluster.patch(kind, obj, change, "strategic")
    except RequestError as error:
        if error.is_not_found or error.code == 422:
            return None
        raise
