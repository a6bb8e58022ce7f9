"""A controller's read and write access to the cluster.

Reads are from informers and cost no request. Every write returns only when the informer has seen it:
a controller never acts on a state older than its own last write, and needs no bookkeeping of expectations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Final

import msgspec

from moorage.api.manifests import Manifest, labels_of, timestamp
from moorage.client.client import Client, PatchType
from moorage.client.informer import Index, Informer
from moorage.client.kinds import CORE_EVENT, Kind
from moorage.clock import Clock
from moorage.http.errors import RequestError
from moorage_cluster.controllers.event_limits import EventLimits

_MAX_CACHED_EVENTS: Final = 4096
_read_manifest = msgspec.json.Decoder(Manifest).decode


class Cluster:
    """Informers to read, a client to write, and the time; shared by all controllers of a process."""

    def __init__(self, client: Client, clock: Clock, random: Random) -> None:
        self.client = client
        self.clock = clock
        self.random = random
        self._informers: dict[Kind, Informer[Manifest]] = {}
        self._by_owner: dict[Kind, Index[Manifest]] = {}
        self._orphans: dict[Kind, Index[Manifest]] = {}
        self._by_namespace: dict[Kind, Index[Manifest]] = {}
        self._event_limits = EventLimits()
        self._recorded_events: dict[tuple[str, ...], tuple[str, int]] = {}

    # -- reading

    def informer(self, kind: Kind) -> Informer[Manifest]:
        """The shared informer of a kind; all are requested before they run."""
        if kind not in self._informers:
            self._informers[kind] = Informer(
                self.client, kind, self.clock, decode=_reader(kind), random=self.random
            )
        return self._informers[kind]

    def informers(self) -> Iterable[Informer[Manifest]]:
        """All informers that were requested."""
        return list(self._informers.values())

    def owned(self, kind: Kind) -> Index[Manifest]:
        """The objects of a kind by the uid of their controller."""
        if kind not in self._by_owner:
            self._by_owner[kind] = Index(self.informer(kind), _controller_uids)
        return self._by_owner[kind]

    def orphans(self, kind: Kind) -> Index[Manifest]:
        """The objects of a kind without controller, by `namespace` and by `namespace/label=value`."""
        if kind not in self._orphans:
            self._orphans[kind] = Index(self.informer(kind), _orphan_keys)
        return self._orphans[kind]

    def within(self, kind: Kind) -> Index[Manifest]:
        """The objects of a kind by their namespace."""
        if kind not in self._by_namespace:
            self._by_namespace[kind] = Index(self.informer(kind), _namespaces)
        return self._by_namespace[kind]

    # -- writing

    async def create(self, kind: Kind, namespace: str, obj: Manifest) -> Manifest:
        """Create an object."""
        made = await self.client.create(kind, namespace, obj)
        await self._seen(kind, made)
        return made

    async def update(self, kind: Kind, obj: Manifest, subresource: str = "") -> Manifest:
        """Replace an object or its status."""
        stored = await self.client.update(kind, obj, subresource)
        await self._seen(kind, stored)
        return stored

    async def patch(
        self, kind: Kind, obj: Manifest, patch: Manifest, type: PatchType = "merge", subresource: str = ""
    ) -> Manifest:
        """Change some fields of an object."""
        meta = obj["metadata"]
        stored = await self.client.patch(
            kind, meta.get("namespace", ""), meta["name"], patch, type, subresource
        )
        await self._seen(kind, stored)
        return stored

    async def delete(
        self, kind: Kind, obj: Manifest, *, grace_seconds: int | None = None, propagation: str = ""
    ) -> None:
        """Delete the object with this uid, or begin to; one that is already deleted is no failure."""
        meta = obj["metadata"]
        namespace, name, uid = meta.get("namespace", ""), meta["name"], meta["uid"]
        try:
            await self.client.delete(
                kind, namespace, name, grace_seconds=grace_seconds, uid=uid, propagation=propagation
            )
        except RequestError as error:
            if not (error.is_not_found or error.is_conflict):
                raise
            return
        informer = self._informers.get(kind)
        if informer is None:
            return

        def is_caught_up() -> bool:
            known = informer.get(namespace, name)
            return (
                known is None or known["metadata"]["uid"] != uid or "deletionTimestamp" in known["metadata"]
            )

        await informer.until(is_caught_up)

    async def _seen(self, kind: Kind, stored: Manifest) -> None:
        informer = self._informers.get(kind)
        if informer is None:
            return
        meta = stored["metadata"]
        key, version = (meta.get("namespace", ""), meta["name"]), int(meta["resourceVersion"])
        await informer.until(lambda: _is_at(informer, key, version))

    async def record_event(
        self, about: Manifest, type: str, reason: str, message: str, component: str
    ) -> None:
        """Record an event about an object, as `kubectl describe` shows it.

        A repeated event raises the count of the first.
        """
        meta = about["metadata"]
        namespace = meta.get("namespace", "") or "default"
        now = self.clock.utc_now()
        if not self._event_limits.take(component, meta["uid"], self.clock.now()):
            return
        same = (meta["uid"], type, reason, message, component)
        if same in self._recorded_events and await self._count_repeated_event(
            namespace, same, timestamp(now)
        ):
            return
        name = f"{meta['name']}.{self.random.getrandbits(64):016x}"
        event: Manifest = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "namespace": meta.get("namespace", ""),
                "name": meta["name"],
                "uid": meta["uid"],
                "resourceVersion": meta["resourceVersion"],
            },
            "type": type,
            "reason": reason,
            "message": message[:1024],
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": "",
            "firstTimestamp": timestamp(now),
            "lastTimestamp": timestamp(now),
            "count": 1,
        }
        try:
            await self.client.create(CORE_EVENT, namespace, event)
        except RequestError:
            return  # A terminating namespace accepts no more events; nothing depends on them.
        self._cache_event(same, name, 1)

    async def _count_repeated_event(self, namespace: str, same: tuple[str, ...], now: str) -> bool:
        """Raise the count of an event; False if it no longer exists."""
        name, count = self._recorded_events.pop(same)
        patch = {"count": count + 1, "lastTimestamp": now}
        try:
            await self.client.patch(CORE_EVENT, namespace, name, patch, "merge")
        except RequestError:
            return False
        self._cache_event(same, name, count + 1)
        return True

    def _cache_event(self, same: tuple[str, ...], name: str, count: int) -> None:
        self._recorded_events[same] = (name, count)
        if len(self._recorded_events) > _MAX_CACHED_EVENTS:
            del self._recorded_events[next(iter(self._recorded_events))]


def _reader(kind: Kind) -> Callable[[bytes], Manifest]:
    """Decodes objects of a kind; items of a list have no apiVersion and kind of their own."""

    def read(raw: bytes) -> Manifest:
        obj = _read_manifest(raw)
        obj.setdefault("apiVersion", kind.api_version)
        obj.setdefault("kind", kind.name)
        return obj

    return read


def _is_at(informer: Informer[Manifest], key: tuple[str, str], version: int) -> bool:
    """Whether an informer has seen a version of an object, or is beyond it."""
    known = informer.objects.get(key)
    if known is not None:
        return int(known["metadata"]["resourceVersion"]) >= version
    return informer.version >= version


def _controller_uids(obj: Manifest) -> list[str]:
    owner = controller_of(obj)
    return [owner["uid"]] if owner else []


def _orphan_keys(obj: Manifest) -> list[str]:
    if controller_of(obj):
        return []
    namespace = obj["metadata"].get("namespace", "")
    return [namespace, *(f"{namespace}/{key}={value}" for key, value in labels_of(obj).items())]


def _namespaces(obj: Manifest) -> list[str]:
    return [obj["metadata"].get("namespace", "")]


def controller_of(obj: Manifest) -> Manifest | None:
    """The owner that manages an object, if any."""
    owners: list[Manifest] = obj["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def owner_reference(owner: Manifest) -> Manifest:
    """The controller owner reference to an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
