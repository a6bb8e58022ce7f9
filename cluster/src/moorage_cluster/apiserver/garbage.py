"""Garbage collection: deletes dependents without remaining owners; foreground deletion and orphaning.

Follows the store's changes. The resulting work is deferred until the write that caused it has been answered
(`DeferredJobs.soon`), so a write never waits for the deletion of a thousand pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from http import HTTPStatus
from typing import NamedTuple

from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.deferred_jobs import DeferredJobs
from moorage_cluster.apiserver.resources import APIResource, Resources
from moorage_cluster.apiserver.rest.context import Context
from moorage_cluster.apiserver.rest.deletes import FOREGROUND, ORPHAN, DeleteOptions, Deleter
from moorage_cluster.apiserver.rest.writes import Writer
from moorage_cluster.apiserver.store import Change, Collection, Key, decode


class _ObjectKey(NamedTuple):
    """The location of an object in the store."""

    storage: str
    key: Key


class _Owner(Enum):
    """The state of an owner, from the view of its dependent."""

    STAYS = auto()
    """It exists, or that cannot be determined: the dependent is kept."""
    WAITS = auto()
    """It is in foreground deletion, which waits for its dependents."""
    GONE = auto()


class GarbageCollector:
    """The graph of owner references, and the deletions that follow from it."""

    def __init__(self, resources: Resources, writer: Writer, deleter: Deleter, work: DeferredJobs) -> None:
        self._resources = resources
        self._writer = writer
        self._deleter = deleter
        self._soon = work.soon
        self._live: dict[str, _ObjectKey] = {}
        self._dependents: dict[str, set[_ObjectKey]] = {}

    def load(self) -> None:
        """Build the graph of stored objects; resume deletions, and collect objects without owners."""
        for collection in self._writer.store.collections():
            for stored in collection.items.values():
                meta = stored.obj["metadata"]
                self._learn(_ObjectKey(collection.name, stored.key), meta)
                if _affects_dependents(meta):
                    self._enqueue(self._process_deleting_owner, meta["uid"])
        for owner in [uid for uid in self._dependents if uid not in self._live]:
            self._enqueue(self._process_absent_owner, owner)

    def on_change(self, collection: Collection, change: Change) -> None:
        """Record a change, and queue the work that follows from it."""
        stored, before = change.stored, change.previous
        is_dependent = stored.has_owners or (before is not None and before.has_owners)
        is_absent, uid = change.type == "DELETED", stored.uid
        if not (is_absent or is_dependent or stored.is_being_deleted):
            if before is None:
                self._live[uid] = _ObjectKey(collection.name, stored.key)
            return
        obj_key = _ObjectKey(collection.name, stored.key)
        meta = decode(stored.raw)["metadata"]
        if before is not None and is_dependent:
            self._release(obj_key, before.decoded()["metadata"], {} if is_absent else meta)
        if is_absent:
            self._live.pop(uid, None)
            if uid in self._dependents:
                self._enqueue(self._process_absent_owner, uid)
            return
        self._learn(obj_key, meta)
        if is_dependent and not all(self._is_same_scope(owner, obj_key) for owner in _owner_uids(meta)):
            self._soon(lambda: self._check(obj_key))
        if _affects_dependents(meta):
            self._enqueue(self._process_deleting_owner, uid)

    def _enqueue(self, job: Callable[[str], None], uid: str) -> None:
        self._soon(lambda: job(uid))

    def _learn(self, obj_key: _ObjectKey, meta: Manifest) -> None:
        self._live[meta["uid"]] = obj_key
        for owner in _owner_uids(meta):
            self._dependents.setdefault(owner, set()).add(obj_key)

    def _release(self, obj_key: _ObjectKey, before: Manifest, meta: Manifest) -> None:
        """Remove dropped owner references from the graph, and check owners that are no longer blocked."""
        for owner in set(_owner_uids(before)) - set(_owner_uids(meta)):
            obj_keys = self._dependents.get(owner, set())
            obj_keys.discard(obj_key)
            if not obj_keys:
                self._dependents.pop(owner, None)
        for owner in _blocked_uids(before) - _blocked_uids(meta):
            self._enqueue(self._process_deleting_owner, owner)

    def _is_same_scope(self, owner: str, obj_key: _ObjectKey) -> bool:
        """Whether an owner exists, in the dependent's namespace or cluster-wide."""
        found = self._live.get(owner)
        return found is not None and found.key[0] in ("", obj_key.key[0])

    # -- decisions

    def _process_absent_owner(self, uid: str) -> None:
        for obj_key in sorted(self._dependents.get(uid, ())):
            self._check(obj_key)

    def _check(self, obj_key: _ObjectKey) -> None:
        """Delete an object with no remaining owner; otherwise drop references to owners that are gone."""
        obj = self._find(obj_key)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            return
        meta = obj["metadata"]
        owners = meta.get("ownerReferences") or []
        states = [self._state(owner, obj_key) for owner in owners]
        staying = [owner for owner, state in zip(owners, states, strict=True) if state is _Owner.STAYS]
        if staying:
            if len(staying) < len(owners):
                self._edit(obj_key, lambda meta: meta.update(ownerReferences=staying))
        elif _Owner.WAITS in states and meta["uid"] in self._dependents:
            if any(self._is_foreground(dependent) for dependent in self._dependents[meta["uid"]]):
                self._edit(obj_key, _unblock_owners)  # Avoids a deadlock of circular owner references.
            self._delete(obj_key, "Foreground")
        elif owners:
            self._delete(obj_key, _policy(meta))

    def _state(self, owner: Manifest, obj_key: _ObjectKey) -> _Owner:
        namespace = obj_key.key[0]
        resource = self._resources.of_kind(owner.get("apiVersion", ""), owner.get("kind", ""))
        if resource is None or (resource.namespaced and not namespace):
            return _Owner.STAYS
        should_be = _ObjectKey(resource.storage, (namespace if resource.namespaced else "", owner["name"]))
        if self._live.get(owner.get("uid", "")) != should_be:
            return _Owner.GONE
        return _Owner.WAITS if self._is_foreground(should_be) else _Owner.STAYS

    def _is_foreground(self, obj_key: _ObjectKey) -> bool:
        obj = self._find(obj_key)
        meta = obj["metadata"] if obj else {}
        return bool(meta.get("deletionTimestamp")) and FOREGROUND in (meta.get("finalizers") or ())

    def _process_deleting_owner(self, uid: str) -> None:
        """Continue the foreground deletion of an owner, or orphan its dependents."""
        obj_key = self._live.get(uid)
        obj = obj_key and self._find(obj_key)
        if obj_key is None or obj is None or not _affects_dependents(obj["metadata"]):
            return
        dependents = sorted(self._dependents.get(uid, ()))
        if ORPHAN in obj["metadata"]["finalizers"]:
            for dependent in dependents:
                self._edit(dependent, lambda meta: _disown(meta, uid))
            self._finish(obj_key, ORPHAN)
            return
        blocking = [dependent for dependent in dependents if self._blocks(dependent, uid)]
        if not blocking:
            self._finish(obj_key, FOREGROUND)
        for dependent in blocking:
            self._check(dependent)

    def _blocks(self, obj_key: _ObjectKey, uid: str) -> bool:
        obj = self._find(obj_key)
        return obj is not None and uid in _blocked_uids(obj["metadata"])

    # -- execution

    def _find(self, obj_key: _ObjectKey) -> Manifest | None:
        return self._writer.store.find(obj_key.storage, *obj_key.key)

    def _resource(self, obj_key: _ObjectKey) -> APIResource | None:
        return next((one for one in self._resources if one.storage == obj_key.storage), None)

    def _delete(self, obj_key: _ObjectKey, policy: str) -> None:
        resource = self._resource(obj_key)
        obj = self._find(obj_key)
        if resource is None or obj is None:
            return
        try:
            options = DeleteOptions(policy=policy, uid=obj["metadata"]["uid"])
            self._deleter.delete(resource, *obj_key.key, options, Context())
        except ApiError as error:
            if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise  # The job is run again.
            # Rejected by admission: as with any client, the object is kept.

    def _edit(self, obj_key: _ObjectKey, change: Callable[[Manifest], None]) -> None:
        resource = self._resource(obj_key)
        stored = self._writer.store.collection(obj_key.storage).get(obj_key.key)
        if resource is None or stored is None:
            return
        old, obj = self._writer.opened(resource, stored), self._writer.opened(resource, stored)
        change(obj["metadata"])
        self._writer.replace(resource, stored, old, obj, Context())

    def _finish(self, obj_key: _ObjectKey, finalizer: str) -> None:
        def drop(meta: Manifest) -> None:
            meta["finalizers"] = [name for name in meta["finalizers"] if name != finalizer]
            if not meta["finalizers"]:
                del meta["finalizers"]

        self._edit(obj_key, drop)


def _affects_dependents(meta: Manifest) -> bool:
    """Whether an object is being deleted with the foreground or orphan policy."""
    return bool(meta.get("deletionTimestamp")) and bool(
        {ORPHAN, FOREGROUND} & set(meta.get("finalizers") or ())
    )


def _policy(meta: Manifest) -> str:
    """The propagation policy for an object without owners: background unless its finalizers differ."""
    finalizers = meta.get("finalizers") or ()
    return "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"


def _owners(meta: Manifest) -> Iterable[Manifest]:
    return meta.get("ownerReferences") or ()


def _owner_uids(meta: Manifest) -> list[str]:
    return [owner.get("uid", "") for owner in _owners(meta)]


def _blocked_uids(meta: Manifest) -> set[str]:
    """Owners with `blockOwnerDeletion` in this dependent."""
    return {owner.get("uid", "") for owner in _owners(meta) if owner.get("blockOwnerDeletion")}


def _unblock_owners(meta: Manifest) -> None:
    for owner in _owners(meta):
        if owner.get("blockOwnerDeletion"):
            owner["blockOwnerDeletion"] = False


def _disown(meta: Manifest, uid: str) -> None:
    left = [owner for owner in _owners(meta) if owner.get("uid") != uid]
    if left:
        meta["ownerReferences"] = left
    else:
        meta.pop("ownerReferences", None)
