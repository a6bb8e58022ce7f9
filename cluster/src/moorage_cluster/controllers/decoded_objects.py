"""Objects of an informer in the types of `moorage.api`, for the rules that the scheduler has, too."""

from __future__ import annotations

from typing import Generic, TypeVar

from moorage.api.base import Object
from moorage.api.decode import InputError, convert
from moorage.api.manifests import Manifest
from moorage.client.informer import EventType, Key, Listener, Observable
from moorage.klog import Logger, ObjectRef

T = TypeVar("T", bound=Object)

log = Logger(__name__)


class DecodedObjects(Generic[T]):
    """Every object is decoded once for each of its changes; create this before the informer runs.

    An object that cannot be decoded is left out, with a log line.
    """

    def __init__(self, informer: Observable[Manifest], type: type[T]) -> None:
        self.objects: dict[Key, T] = {}
        self.listeners: list[Listener[T]] = []
        self._type = type
        informer.listeners.append(self._follow)
        for obj in informer.objects.values():
            self._follow("ADDED", obj, None)

    def _follow(self, type: EventType, obj: Manifest, before: Manifest | None) -> None:
        key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        known = self.objects.pop(key, None)
        decoded = None if type == "DELETED" else self._decoded(key, obj)
        if decoded is not None:
            self.objects[key] = decoded
            self._record_event("ADDED" if known is None else "MODIFIED", decoded, known)
        elif known is not None:
            self._record_event("DELETED", known, known)

    def _record_event(self, type: EventType, obj: T, before: T | None) -> None:
        for listener in self.listeners:
            listener(type, obj, before)

    def _decoded(self, key: Key, obj: Manifest) -> T | None:
        try:
            return convert(obj, self._type)
        except InputError as error:
            log.error(error, "Unable to decode an object", object=ObjectRef(key[1], key[0]))
            return None
