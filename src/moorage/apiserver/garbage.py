"""Garbage collection: objects go when all their owners are gone; an owner may wait for them, or let them go.

Follows the store's changes. What has to be done about one is put off until the write that caused it has been
answered (`Work.soon`), so a write never waits for the deletion of a thousand pods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from moorage.apiserver.errors import ApiError
from moorage.apiserver.objects import Manifest
from moorage.apiserver.resources import Resource, Resources
from moorage.apiserver.rest.context import Context
from moorage.apiserver.rest.deletes import FOREGROUND, ORPHAN, DeleteOptions, Deleter
from moorage.apiserver.rest.writes import Writer
from moorage.apiserver.store import Change, Collection, Key, decode
from moorage.apiserver.work import Work


class _Place(NamedTuple):
    """Where an object is kept."""

    storage: str
    key: Key


class GarbageCollector:
    """Knows who owns whom."""

    def __init__(self, resources: Resources, writer: Writer, deleter: Deleter, work: Work) -> None:
        self._resources = resources
        self._writer = writer
        self._deleter = deleter
        self._soon = work.soon
        self._live: dict[str, _Place] = {}
        self._dependents: dict[str, set[_Place]] = {}

    def load(self) -> None:
        """Learn what was there before; whose owners are gone goes now."""
        for collection in self._writer.store.collections():
            for stored in collection.items.values():
                self._learn(_Place(collection.name, stored.key), stored.obj)
        for owner in [uid for uid in self._dependents if uid not in self._live]:
            self._soon(lambda uid=owner: self._owner_gone(uid))  # type: ignore[misc]

    def follow(self, collection: Collection, change: Change) -> None:
        """Note a change, and what is to be done because of it."""
        place = _Place(collection.name, change.stored.key)
        before = change.previous
        # Most writes touch no owner: looking at the encoded form is much cheaper than decoding it.
        concerned = b'"ownerReferences"' in change.stored.raw or (
            before is not None and b'"ownerReferences"' in before.raw
        )
        if change.type == "MODIFIED" and not concerned and b'"deletionTimestamp"' not in change.stored.raw:
            return
        meta = decode(change.stored.raw)["metadata"]
        uid = meta["uid"]
        if before is not None and concerned:
            for owner in _owner_uids(before.decoded()["metadata"]):
                places = self._dependents.get(owner, set())
                places.discard(place)
                if not places:
                    self._dependents.pop(owner, None)
                    self._soon(lambda owner=owner: self._dependent_gone(owner))  # type: ignore[misc]
        if change.type == "DELETED":
            self._live.pop(uid, None)
            if uid in self._dependents:
                self._soon(lambda: self._owner_gone(uid))
            return
        self._learn(place, {"metadata": meta})
        if concerned and any(owner not in self._live for owner in _owner_uids(meta)):
            self._soon(lambda: self._check(place))
        if meta.get("deletionTimestamp") and {ORPHAN, FOREGROUND} & set(meta.get("finalizers") or ()):
            self._soon(lambda: self._owner_goes(uid))

    def _learn(self, place: _Place, obj: Manifest) -> None:
        meta = obj["metadata"]
        self._live[meta["uid"]] = place
        for owner in _owner_uids(meta):
            self._dependents.setdefault(owner, set()).add(place)

    # -- what is to be done

    def _owner_gone(self, uid: str) -> None:
        for place in sorted(self._dependents.get(uid, ())):
            self._check(place)

    def _check(self, place: _Place) -> None:
        """Delete an object that has owners, but none that lives; else drop the owners that are gone."""
        obj = self._writer.store.find(place.storage, *place.key)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            return
        owners = obj["metadata"].get("ownerReferences") or []
        living = [owner for owner in owners if owner.get("uid") in self._live]
        if owners and not living:
            self._delete(place, "Background")
        elif len(living) < len(owners):
            self._edit(place, lambda meta: meta.update(ownerReferences=living))

    def _owner_goes(self, uid: str) -> None:
        """An owner that is being deleted waits for its dependents, or lets them go."""
        place = self._live.get(uid)
        obj = place and self._writer.store.find(place.storage, *place.key)
        if place is None or obj is None:
            return
        finalizers = obj["metadata"].get("finalizers") or []
        dependents = sorted(self._dependents.get(uid, ()))
        if ORPHAN in finalizers:
            for dependent in dependents:
                self._edit(dependent, lambda meta: _disown(meta, uid))
            self._finish(place, ORPHAN)
        elif FOREGROUND in finalizers:
            blocking = [dependent for dependent in dependents if self._blocks(dependent, uid)]
            if not blocking:
                self._finish(place, FOREGROUND)
            for dependent in dependents:
                self._delete(dependent, "Foreground")

    def _dependent_gone(self, owner: str) -> None:
        self._owner_goes(owner)

    def _blocks(self, place: _Place, uid: str) -> bool:
        obj = self._writer.store.find(place.storage, *place.key)
        owners = obj["metadata"].get("ownerReferences") or [] if obj else []
        return any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") for owner in owners)

    # -- how it is done

    def _resource(self, place: _Place) -> Resource | None:
        return next((one for one in self._resources if one.storage == place.storage), None)

    def _delete(self, place: _Place, policy: str) -> None:
        resource = self._resource(place)
        obj = self._writer.store.find(place.storage, *place.key)
        if resource is None or obj is None or obj["metadata"].get("deletionTimestamp"):
            return
        try:
            options = DeleteOptions(policy=policy, uid=obj["metadata"]["uid"])
            self._deleter.delete(resource, *place.key, options, Context())
        except ApiError:
            return  # Refused by admission: as with any client, the object stays.

    def _edit(self, place: _Place, change: Callable[[Manifest], None]) -> None:
        resource = self._resource(place)
        stored = self._writer.store.collection(place.storage).get(place.key)
        if resource is None or stored is None:
            return
        old, obj = self._writer.opened(resource, stored), self._writer.opened(resource, stored)
        change(obj["metadata"])
        self._writer.replace(resource, stored, old, obj, Context())

    def _finish(self, place: _Place, finalizer: str) -> None:
        def drop(meta: Manifest) -> None:
            meta["finalizers"] = [name for name in meta["finalizers"] if name != finalizer]
            if not meta["finalizers"]:
                del meta["finalizers"]

        self._edit(place, drop)


def _owner_uids(meta: Manifest) -> list[str]:
    return [owner.get("uid", "") for owner in meta.get("ownerReferences") or ()]


def _disown(meta: Manifest, uid: str) -> None:
    left = [owner for owner in meta.get("ownerReferences") or () if owner.get("uid") != uid]
    if left:
        meta["ownerReferences"] = left
    else:
        meta.pop("ownerReferences", None)
