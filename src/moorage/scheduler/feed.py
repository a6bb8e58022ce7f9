"""What the scheduler follows: the kinds that plugins look at, decoded as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final

import msgspec

from moorage.api.as_sent import KEEPING, keep
from moorage.api.base import Object
from moorage.api.decode import KINDS, convert, decode_hook
from moorage.api.manifests import Manifest
from moorage.api.pod import Pod
from moorage.client import kinds
from moorage.client.client import Client
from moorage.client.informer import Informer, Listener
from moorage.client.kinds import Kind
from moorage.clock import Clock
from moorage.framework.runtime.framework import Framework
from moorage.scheduler.handlers import Handlers
from moorage.scheduler.needs import custom_kind, custom_kinds, needed_kinds, read_custom

NewInformer = Callable[..., Informer[Any]]
"""Makes informers: over requests, unless somebody has the objects at hand."""

_UNFINISHED: Final = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
"""Pods that are over take nothing from anybody."""


def decoder(kind: type[Object], *, keeps_whole: bool = False) -> Callable[[bytes], Object]:
    """Decodes objects of a kind as the API server sends them.

    keeps_whole: whether pods and nodes keep what was sent; other kinds never do.
    """
    if keeps_whole and kind in KEEPING:
        known = decoder(KEEPING[kind])
        return lambda raw: keep(known(raw), raw)
    decode = msgspec.json.Decoder(kind, dec_hook=decode_hook).decode

    def decoded(raw: bytes) -> Object:
        try:
            return decode(raw)
        except msgspec.ValidationError:
            # Nulls where none are expected: rare, and worth the slow way.
            return convert(msgspec.json.decode(raw), kind)

    return decoded


class Feed:
    """Informers of every kind that the enabled plugins look at, joined to what they feed."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        random: Random,
        handlers: Handlers,
        frameworks: Iterable[Framework],
        new_informer: NewInformer = Informer,
        *,
        keeps_whole: bool = False,
    ) -> None:
        self._keeps_whole = keeps_whole
        self._client = client
        self._new_informer = new_informer
        self._clock = clock
        self._random = random
        self._handlers = handlers
        self.pods: Informer[Object] = new_informer(
            client,
            kinds.POD,
            clock,
            decode=decoder(Pod, keeps_whole=keeps_whole),
            query=_UNFINISHED,
            random=random,
        )
        self.pods.listeners.append(handlers.pod)
        self.informers: list[Informer[Any]] = [self._of(kinds.NODE, handlers.node)]
        """All of them, in the order in which they are best listed: pods last."""
        self.add(frameworks)
        self.informers.append(self.pods)

    def add(self, frameworks: Iterable[Framework]) -> list[Informer[Any]]:
        """Follow what other frameworks look at, too; the informers that are new, which are to be run."""
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
        """Whether pods and nodes are to keep what the API server sent; who is to be run anew for that."""
        if is_wanted is self._keeps_whole:
            return []
        self._keeps_whole = is_wanted
        changed = [each for each in self.informers if KINDS.get(each.kind.name) in KEEPING]
        for informer in changed:
            informer.read_anew(decoder(KINDS[informer.kind.name], keeps_whole=is_wanted))
        return changed

    def custom(self, name: str) -> list[Manifest]:
        """All objects of a kind that only plugins know, by the name they have for it."""
        kind = custom_kind(name)
        return [
            obj.content
            for informer in self.informers
            if informer.kind == kind
            for obj in list(informer.objects.values())  # Plugins may ask in threads.
        ]

    def drop(self, frameworks: Iterable[Framework]) -> list[Informer[Any]]:
        """Follow no more than these frameworks look at; the informers that are to be stopped."""
        frameworks = list(frameworks)
        looked_at = {kinds.NODE, kinds.POD, *needed_kinds(frameworks), *custom_kinds(frameworks).values()}
        dropped = [informer for informer in self.informers if informer.kind not in looked_at]
        self.informers = [informer for informer in self.informers if informer.kind in looked_at]
        return dropped

    def _of(self, kind: Kind, listener: Listener[Object]) -> Informer[Object]:
        decode = decoder(KINDS[kind.name], keeps_whole=self._keeps_whole)
        informer: Informer[Object] = self._new_informer(
            self._client, kind, self._clock, decode=decode, random=self._random
        )
        informer.listeners.append(listener)
        return informer
