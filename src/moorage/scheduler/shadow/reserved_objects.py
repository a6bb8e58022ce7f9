"""Claims and volumes that another scheduler writes before it binds a pod: they count after its decision."""

from __future__ import annotations

from moorage.api.base import Object
from moorage.api.devices import ResourceClaim
from moorage.api.persistent_volumes import SELECTED_NODE, WAIT_FOR_FIRST_CONSUMER, volume_class
from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.client.informer import EventType
from moorage.client.kinds import POD_GROUP
from moorage.cluster.cache import Cache
from moorage.plugins.dynamic_resources.extended_resources import CLAIM_ANNOTATION

Change = tuple[EventType, Object, Object | None]


class ReservedObjects:
    """Changes that the other scheduler made for a pod before binding it, applied after its decision."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._users: dict[tuple[str, str], str] = {}
        """Uids of pending pods by the volume claims that they use."""
        self._pending: dict[str, list[tuple[str, str]]] = {}
        """The volume claims of pending pods by uid."""
        self._held: dict[str, dict[tuple[type[Object], str], Change]] = {}
        """Held changes by the uid of the pod, then by object."""
        self._holder: dict[tuple[type[Object], str], str] = {}

    def follow(self, pod: Pod) -> None:
        """A pod is pending."""
        if pod.uid in self._pending:
            return
        claims = [
            (pod.namespace, volume.persistent_volume_claim.claim_name)
            for volume in pod.spec.volumes
            if volume.persistent_volume_claim is not None
        ]
        self._pending[pod.uid] = claims
        self._users.update(dict.fromkeys(claims, pod.uid))

    def hold(self, type: EventType, obj: Object, before: Object | None) -> bool:
        """Whether a change is held; the last change of an object counts."""
        key = (obj.__class__, obj.key)
        uid = self._holder.get(key) or self._reserved_for(obj)
        if uid is None or uid not in self._pending:
            return False
        known = self._held.setdefault(uid, {}).get(key)
        self._held[uid][key] = (type, obj, before if known is None else known[2])
        self._holder[key] = uid
        return True

    def release(self, uid: str) -> list[Change]:
        """A pod was decided or is gone: the changes that were held for it."""
        for claim in self._pending.pop(uid, ()):
            if self._users.get(claim) == uid:
                del self._users[claim]
        held = self._held.pop(uid, {})
        for key in held:
            del self._holder[key]
        return list(held.values())

    def _reserved_for(self, obj: Object) -> str | None:
        """The uid of the pod for which an object was changed by a scheduler."""
        if isinstance(obj, ResourceClaim):
            users = [each.uid for each in obj.status.reserved_for]
            if CLAIM_ANNOTATION in obj.metadata.annotations:
                users += [each.uid for each in obj.metadata.owner_references]
            users += self._members_of_users(obj)
            return next((uid for uid in users if uid in self._pending), None)
        if isinstance(obj, PersistentVolumeClaim) and SELECTED_NODE in obj.metadata.annotations:
            return self._users.get((obj.namespace, obj.name))
        if isinstance(obj, PersistentVolume) and obj.spec.claim_ref is not None:
            claim = obj.spec.claim_ref
            storage_class = self._cache.objects.of(StorageClass).get("", volume_class(obj))
            if storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER:
                return self._users.get((claim.namespace, claim.name))
        return None

    def _members_of_users(self, claim: ResourceClaim) -> list[str]:
        """The uids of pending pods in groups that a claim is reserved for."""
        groups = self._cache.pod_groups
        names = [each.name for each in claim.status.reserved_for if each.resource == POD_GROUP.plural]
        return [pod.uid for name in names for pod in groups.unscheduled(GroupKey(claim.namespace, name))]
