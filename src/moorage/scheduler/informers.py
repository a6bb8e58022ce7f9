"""The scheduler's informers: one for each kind that plugins read, decoding objects as they arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final

import msgspec

from moorage.api.as_sent import KEEPING, keep
from moorage.api.base import Object
from moorage.api.coscheduling import CoschedulingPodGroup, with_labelled_group
from moorage.api.decode import KINDS, convert, decode_hook
from moorage.api.manifests import Manifest
from moorage.api.pod import Pod
from moorage.client import kinds
from moorage.client.client import Client
from moorage.client.declared_kinds import object_type
from moorage.client.informer import Decode, Informer, Listener
from moorage.client.kinds import Kind
from moorage.clock import Clock
from moorage.framework.runtime.framework import Framework
from moorage.scheduler.event_handlers import EventHandlers
from moorage.scheduler.pod_decoder import LabelledPodDecoder, PodDecoder
from moorage.scheduler.watched_kinds import (
    custom_kind,
    custom_kinds,
    has_labelled_groups,
    needed_kinds,
    read_custom,
)

NewInformer = Callable[..., Informer[Any]]
"""Creates informers: over requests, unless the caller has the objects already."""

UNFINISHED_PODS: Final = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
"""Query of all pods that use resources: finished ones use none."""


def decoder(kind: type[Object], *, keeps_whole: bool = False) -> Callable[[bytes], Object]:
    """A decoder of objects of a kind as the API server sends them.

    keeps_whole: whether pods and nodes keep the bytes that were sent; other kinds never do.
    """
    if keeps_whole and kind in KEEPING:
        known = decoder(KEEPING[kind])
        return lambda raw: keep(known(raw), raw)
    decode = msgspec.json.Decoder(kind, dec_hook=decode_hook).decode

    def decoded(raw: bytes) -> Object:
        try:
            return decode(raw)
        except msgspec.ValidationError:
            # Unexpected nulls: rare, and handled by the slow path.
            return convert(msgspec.json.decode(raw), kind)

    return decoded


def decoder_of(kind: Kind, *, keeps_whole: bool = False) -> Callable[[bytes], Object]:
    """A decoder of objects of a kind that scheduling reads, in the form in which it reads them."""
    if kind != kinds.COSCHEDULING_POD_GROUP:
        known = object_type(kind)
        assert known is not None, kind
        return decoder(known, keeps_whole=keeps_whole)
    decode = decoder(CoschedulingPodGroup)

    def decoded(raw: bytes) -> Object:
        group = decode(raw)
        assert isinstance(group, CoschedulingPodGroup)
        return group.as_pod_group()

    return decoded


class SchedulerInformers:
    """Informers of every kind that the enabled plugins read, connected to the event handlers."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        handlers: EventHandlers,
        frameworks: Iterable[Framework],
        new_informer: NewInformer = Informer,
        *,
        keeps_whole: bool = False,
    ) -> None:
        frameworks = list(frameworks)
        self._types: dict[Kind, type[Object]] = {}
        """The types that objects are decoded as, by kind; other types than these have been declared since."""
        self._keeps_whole = keeps_whole
        self._has_labelled_groups = has_labelled_groups(frameworks)
        self._client = client
        self._new_informer = new_informer
        self._clock = clock
        self._random = random
        self._handlers = handlers
        self.pods: Informer[Object] = new_informer(
            client,
            kinds.POD,
            clock,
            decode=self._decoder(kinds.POD),
            query=UNFINISHED_PODS,
            random=random,
        )
        self.pods.listeners.append(handlers.pod)
        self.informers: list[Informer[Any]] = [self._of(kinds.NODE, handlers.node)]
        """All informers, in the order of listing: pods last."""
        self.add(frameworks)
        self.informers.append(self.pods)

    def redeclared(self) -> list[Informer[Any]]:
        """Decode kinds that plugins have declared again as they say now; returns the informers to restart."""
        changed = []
        for informer in self.informers:
            declared = object_type(informer.kind)
            if declared is not None and self._types.get(informer.kind, declared) is not declared:
                self._types[informer.kind] = declared
                informer.relist_with(self._decoder(informer.kind))
                changed.append(informer)
        return changed

    def add(self, frameworks: Iterable[Framework]) -> list[Informer[Any]]:
        """Add the kinds that other frameworks read; returns the new informers, for the caller to run."""
        frameworks = list(frameworks)
        followed = {informer.kind for informer in self.informers}
        new: list[Informer[Any]] = [
            self._of(kind, self._handlers.other) for kind in needed_kinds(frameworks) if kind not in followed
        ]
        for name, kind in custom_kinds(frameworks).items():
            if kind not in followed:
                informer = self._new_informer(
                    self._client, kind, self._clock, decode=read_custom, random=self._random
                )
                informer.listeners.append(self._handlers.custom(name))
                new.append(informer)
        self.informers += new
        return new

    def keep_whole(self, is_wanted: bool) -> list[Informer[Any]]:
        """Set whether pods and nodes keep the bytes that were sent; returns the informers to restart."""
        if is_wanted is self._keeps_whole:
            return []
        self._keeps_whole = is_wanted
        changed = [each for each in self.informers if KINDS.get(each.kind.name) in KEEPING]
        for informer in changed:
            informer.relist_with(self._decoder(informer.kind))
        return changed

    def _decoder(self, kind: Kind) -> Decode[Any]:
        if kind != kinds.POD:
            return decoder_of(kind, keeps_whole=self._keeps_whole)
        if not self._keeps_whole:
            return LabelledPodDecoder() if self._has_labelled_groups else PodDecoder()
        decode: Callable[[bytes], Any] = decoder(Pod, keeps_whole=True)
        return (lambda raw: with_labelled_group(decode(raw))) if self._has_labelled_groups else decode

    def custom(self, name: str) -> list[Manifest]:
        """All objects of a custom kind, by the name that plugins use for it."""
        kind = custom_kind(name)
        return [
            obj.content
            for informer in self.informers
            if informer.kind == kind
            for obj in list(informer.objects.values())  # Plugins may call this in threads.
        ]

    def drop(self, frameworks: Iterable[Framework]) -> list[Informer[Any]]:
        """Remove the kinds that none of these frameworks reads; returns the informers to stop."""
        frameworks = list(frameworks)
        looked_at = {kinds.NODE, kinds.POD, *needed_kinds(frameworks), *custom_kinds(frameworks).values()}
        dropped = [informer for informer in self.informers if informer.kind not in looked_at]
        self.informers = [informer for informer in self.informers if informer.kind in looked_at]
        return dropped

    def _of(self, kind: Kind, listener: Listener[Object]) -> Informer[Object]:
        if (known := object_type(kind)) is not None:
            self._types[kind] = known
        informer: Informer[Object] = self._new_informer(
            self._client, kind, self._clock, decode=self._decoder(kind), random=self._random
        )
        informer.listeners.append(listener)
        return informer
