"""Claims of a StatefulSet's pods: created with the pod, and owned according to the set's retention policy.

A claim that is deleted with the set is owned by the set; one that is deleted on scale-down is owned by its
pod, once that is to be deleted. The garbage collector does the rest.
"""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage.client.kinds import PERSISTENT_VOLUME_CLAIM
from moorage.http.errors import RequestError
from moorage_cluster.controllers.cluster import Cluster, owner_reference
from moorage_cluster.controllers.pods import is_deleted
from moorage_cluster.controllers.revisions import name_of
from moorage_cluster.controllers.stateful_pods import claims_for, ordinal_of, ordinals

_DELETE: Final = "Delete"


def _is_deleted_when(stateful_set: Manifest, when: str) -> bool:
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return bool(policy.get(when) == _DELETE)


async def make_claims(cluster: Cluster, stateful_set: Manifest, ordinal: int, component: str) -> None:
    """Create the missing claims of the pod of an ordinal."""
    namespace, set_name = stateful_set["metadata"]["namespace"], name_of(stateful_set)
    pod_name = f"{set_name}-{ordinal}"
    for wanted in claims_for(stateful_set, ordinal).values():
        known = cluster.informer(PERSISTENT_VOLUME_CLAIM).get(namespace, name_of(wanted))
        if known is not None and not is_deleted(known):
            continue
        subject = f"Claim {name_of(wanted)}"
        try:
            if known is not None:
                raise RequestError(
                    409, "AlreadyExists", f"pvc {name_of(known)} is being deleted", known["metadata"]
                )
            await cluster.create(PERSISTENT_VOLUME_CLAIM, namespace, wanted)
        except RequestError as error:
            message = f"Create {subject} for Pod {pod_name} in StatefulSet {set_name} failed error: {error}"
            await cluster.record_event(stateful_set, "Warning", "FailedCreate", message, component)
            raise
        message = f"Create {subject} Pod {pod_name} in StatefulSet {set_name} success"
        await cluster.record_event(stateful_set, "Normal", "SuccessfulCreate", message, component)


def is_stale(cluster: Cluster, stateful_set: Manifest, ordinal: int) -> bool:
    """Whether a claim is owned by an earlier pod of that ordinal; the next pod waits for its deletion."""
    if not _is_deleted_when(stateful_set, "whenScaled"):
        return False
    pod_name = f"{name_of(stateful_set)}-{ordinal}"
    return any(
        owner["kind"] == "Pod" and owner["name"] == pod_name
        for known in _known(cluster, stateful_set, ordinal)
        for owner in known["metadata"].get("ownerReferences") or []
    )


async def own_claims(cluster: Cluster, stateful_set: Manifest, pod: Manifest, component: str) -> None:
    """Set the owner references of a pod's claims according to the set's policy."""
    ordinal = ordinal_of(pod)
    for known in _known(cluster, stateful_set, ordinal):
        owners: list[Manifest] = known["metadata"].get("ownerReferences") or []
        others = [each for each in owners if not _is_ours(each, stateful_set, pod)]
        if any(_is_stale_reference(each, stateful_set, pod) for each in owners):
            continue
        wanted = others
        if any(each.get("controller") for each in others):
            message = (
                f"PersistentVolumeClaim {name_of(known)} has a conflicting OwnerReference that acts as a "
                "manging controller, the retention policy is ignored for this claim"
            )
            if _is_deleted_when(stateful_set, "whenScaled") or _is_deleted_when(stateful_set, "whenDeleted"):
                await cluster.record_event(
                    stateful_set, "Warning", "ConflictingController", message, component
                )
        elif ordinal not in ordinals(stateful_set) and _is_deleted_when(stateful_set, "whenScaled"):
            wanted = [*others, owner_reference(pod)]
        elif _is_deleted_when(stateful_set, "whenDeleted"):
            wanted = [*others, owner_reference(stateful_set)]
        if [each["uid"] for each in wanted] != [each["uid"] for each in owners]:
            change = {"metadata": {"ownerReferences": wanted or None, "uid": known["metadata"]["uid"]}}
            await cluster.patch(PERSISTENT_VOLUME_CLAIM, known, change)


def _known(cluster: Cluster, stateful_set: Manifest, ordinal: int) -> list[Manifest]:
    informer = cluster.informer(PERSISTENT_VOLUME_CLAIM)
    namespace = stateful_set["metadata"]["namespace"]
    found = (informer.get(namespace, name_of(each)) for each in claims_for(stateful_set, ordinal).values())
    return [each for each in found if each is not None]


def _names(owner: Manifest, stateful_set: Manifest, pod: Manifest) -> Manifest | None:
    """Which of a set and a pod an owner reference names."""
    named = {"StatefulSet": stateful_set, "Pod": pod}.get(owner["kind"])
    return named if named is not None and name_of(named) == owner["name"] else None


def _is_ours(owner: Manifest, stateful_set: Manifest, pod: Manifest) -> bool:
    return _names(owner, stateful_set, pod) is not None


def _is_stale_reference(owner: Manifest, stateful_set: Manifest, pod: Manifest) -> bool:
    """Whether an owner reference names an earlier set or pod of that name: the claim is deleted with it."""
    named = _names(owner, stateful_set, pod)
    return named is not None and bool(named["metadata"]["uid"] != owner["uid"])
