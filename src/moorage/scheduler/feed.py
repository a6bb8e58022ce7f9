"""What the scheduler follows: every kind that scheduling reads, decoded as it comes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from moorage.api.base import Object
from moorage.api.decode import KINDS, InputError, decode_hook, decode_object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.client import kinds
from moorage.client.client import Client
from moorage.client.informer import Informer
from moorage.client.kinds import Kind
from moorage.clock import Clock
from moorage.scheduler.handlers import Handlers

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
    """Informers of every kind that scheduling reads, joined to what they feed."""

    def __init__(self, client: Client, clock: Clock, handlers: Handlers) -> None:
        nodes: Informer[Object] = Informer(client, kinds.NODE, clock, decode=decoder(Node))
        nodes.listeners.append(handlers.node)
        self.pods: Informer[Object] = Informer(client, kinds.POD, clock, decode=decoder(Pod))
        self.pods.listeners.append(handlers.pod)
        self.informers = [nodes]
        """All of them, in the order in which they are best listed: pods last."""
        for kind in _OTHERS:
            informer: Informer[Object] = Informer(client, kind, clock, decode=decoder(KINDS[kind.name]))
            informer.listeners.append(handlers.other)
            self.informers.append(informer)
        self.informers.append(self.pods)
