"""Finalizers that protect claims, volumes and volume attributes classes from deletion while in use."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, status_of
from moorage.client.informer import EventType, Index
from moorage.client.kinds import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VOLUME_ATTRIBUTES_CLASS,
)
from moorage_cluster.controllers.cluster import Cluster
from moorage_cluster.controllers.controller import Controller
from moorage_cluster.controllers.finalizers import is_being_deleted, protect, unprotect
from moorage_cluster.controllers.volume_facts import (
    claim_key,
    claim_keys_of,
    claims_of,
    has_ended,
    is_made_for,
    phase_of,
)

CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"
ATTRIBUTES_CLASS_PROTECTION: Final = "kubernetes.io/vac-protection"


class ClaimProtection(Controller):
    """Removes the finalizer of a deleted claim when no bound pod uses it."""

    name = "persistentvolumeclaim-protection-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._claims = cluster.informer(PERSISTENT_VOLUME_CLAIM)
        self._users = Index(cluster.informer(POD), claim_keys_of)
        self.watch(PERSISTENT_VOLUME_CLAIM)
        self.watch(POD, self._pod_changed)

    def _pod_changed(self, type: EventType, pod: Manifest, before: Manifest | None) -> None:
        """A pod that is deleted, finished or unbound may have been the last user of a deleted claim."""
        if type == "DELETED" or not pod["spec"].get("nodeName") or has_ended(pod):
            for key in claim_keys_of(pod):
                self.enqueue(*key.split("/"))

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Add or remove the finalizer of one claim."""
        claim = self._claims.get(namespace, name)
        if claim is None:
            return None
        if is_being_deleted(claim, CLAIM_PROTECTION):
            # The informer may not have seen a pod yet: a live read decides.
            if not _any_uses(self._users.get(claim_key(claim)), claim) and not _any_uses(
                await self.cluster.client.list(POD, namespace), claim
            ):
                await unprotect(self.cluster, PERSISTENT_VOLUME_CLAIM, claim, CLAIM_PROTECTION)
        else:
            await protect(self.cluster, PERSISTENT_VOLUME_CLAIM, claim, CLAIM_PROTECTION)
        return None


class VolumeProtection(Controller):
    """Removes the finalizer of a deleted volume when it is no longer bound."""

    name = "persistentvolume-protection-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._volumes = cluster.informer(PERSISTENT_VOLUME)
        self.watch(PERSISTENT_VOLUME)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Add or remove the finalizer of one volume."""
        volume = self._volumes.get("", name)
        if volume is None:
            return None
        if not is_being_deleted(volume, VOLUME_PROTECTION):
            await protect(self.cluster, PERSISTENT_VOLUME, volume, VOLUME_PROTECTION)
        elif phase_of(volume) != "Bound":
            await unprotect(self.cluster, PERSISTENT_VOLUME, volume, VOLUME_PROTECTION)
        return None


class AttributesClassProtection(Controller):
    """Removes the finalizer of a deleted volume attributes class when no claim or volume names it."""

    name = "volumeattributesclass-protection-controller"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._classes = cluster.informer(VOLUME_ATTRIBUTES_CLASS)
        kinds = (PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM)
        self._users = [Index(cluster.informer(kind), _attributes_classes) for kind in kinds]
        self.watch(VOLUME_ATTRIBUTES_CLASS)
        for kind in kinds:
            self.watch(kind, self._user_changed)

    def _user_changed(self, type: EventType, user: Manifest, before: Manifest | None) -> None:
        """A claim or volume that no longer names a class may have been its last user."""
        named = () if type == "DELETED" else _attributes_classes(user)
        for name in set(_attributes_classes(before or user)).difference(named):
            self.enqueue("", name)

    async def reconcile(self, namespace: str, name: str) -> float | None:
        """Add or remove the finalizer of one class."""
        attributes_class = self._classes.get("", name)
        if attributes_class is None:
            return None
        if not is_being_deleted(attributes_class, ATTRIBUTES_CLASS_PROTECTION):
            await protect(
                self.cluster, VOLUME_ATTRIBUTES_CLASS, attributes_class, ATTRIBUTES_CLASS_PROTECTION
            )
        elif not any(users.get(name) for users in self._users):
            await unprotect(
                self.cluster, VOLUME_ATTRIBUTES_CLASS, attributes_class, ATTRIBUTES_CLASS_PROTECTION
            )
        return None


def _attributes_classes(user: Manifest) -> list[str]:
    """The names of the desired, current and target volume attributes classes of a claim or volume."""
    status = status_of(user)
    names = {
        user["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    }
    return [name for name in names if name]


def _any_uses(pods: list[Manifest], claim: Manifest) -> bool:
    return any(pod["spec"].get("nodeName") and _uses(pod, claim) for pod in pods)


def _uses(pod: Manifest, claim: Manifest) -> bool:
    meta = pod["metadata"]
    is_shut_down = "deletionTimestamp" in meta and meta.get("deletionGracePeriodSeconds") == 0
    return any(
        name == claim["metadata"]["name"]
        and (not made_for_pod or (not is_shut_down and is_made_for(claim, pod)))
        for name, made_for_pod in claims_of(pod)
    )
