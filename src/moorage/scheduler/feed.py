"""From informers to the cache: every kind that scheduling reads, decoded as it comes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from moorage.api.base import Object
from moorage.api.decode import KINDS, InputError, decode_hook, decode_object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.client import kinds
from moorage.client.client import Client
from moorage.client.informer import EventType, Informer
from moorage.client.kinds import Kind
from moorage.clock import Clock
from moorage.cluster.cache import Cache

_OTHERS: tuple[Kind, ...] = (
    kinds.NAMESPACE,
    kinds.PERSISTENT_VOLUME,
    kinds.PERSISTENT_VOLUME_CLAIM,
    kinds.SERVICE,
    kinds.REPLICATION_CONTROLLER,
    kinds.REPLICA_SET,
    kinds.STATEFUL_SET,
    kinds.POD_DISRUPTION_BUDGET,
    kinds.STORAGE_CLASS,
    kinds.CSI_NODE,
    kinds.CSI_DRIVER,
    kinds.CSI_STORAGE_CAPACITY,
    kinds.VOLUME_ATTACHMENT,
    kinds.RESOURCE_CLAIM,
    kinds.RESOURCE_SLICE,
    kinds.DEVICE_CLASS,
)


def decoder(kind: type[Object]) -> Callable[[bytes], Object]:
    """Decodes objects of a kind as the API server sends them."""
    decode = msgspec.json.Decoder(kind, dec_hook=decode_hook).decode

    def decoded(raw: bytes) -> Object:
        try:
            return decode(raw)
        except msgspec.ValidationError:
            # Nulls where none are expected: rare, and worth the slow way.
            obj = decode_object(msgspec.json.decode(raw))
            if obj is None:
                raise InputError(kind.__name__, "is not what was asked for") from None
            return obj

    return decoded


class Feed:
    """Keeps a cache as the API server says, and tells of what may matter to pods that wait."""

    def __init__(self, client: Client, clock: Clock, cache: Cache) -> None:
        self._cache = cache
        self.nodes: Informer[Object] = Informer(client, kinds.NODE, clock, decode=decoder(Node))
        self.pods: Informer[Object] = Informer(client, kinds.POD, clock, decode=decoder(Pod))
        others: list[Informer[Object]] = [
            Informer(client, kind, clock, decode=decoder(KINDS[kind.name])) for kind in _OTHERS
        ]
        for informer in (self.nodes, *others):
            informer.listeners.append(self._follow)
        self.informers = [self.nodes, *others, self.pods]
        """All of them, in the order in which they are best listed: pods last."""

    def _follow(self, type: EventType, obj: Object, before: Object | None) -> None:
        if type == "DELETED":
            self._cache.remove(obj)
        else:
            self._cache.put(obj)
