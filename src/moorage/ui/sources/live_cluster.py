"""A cluster, read with the permissions of a kubeconfig."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.informer import EventType, Informer
from moorage.client.kinds import NODE, POD, Kind
from moorage.clock import Clock
from moorage.explain.cluster_reader import forbidden_text
from moorage.http.errors import RequestError
from moorage.scheduler.informers import UNFINISHED_PODS, decoder
from moorage.services.responses import Handler
from moorage.ui.documents import SourceInfo
from moorage.ui.sources.source import Feature
from moorage.ui.sources.states import node_state, pod_state
from moorage.ui.timeline import Timeline
from moorage.version import __version__

_BATCH_SECONDS: Final = 0.1
"""How long changes are collected before the page hears of them, in seconds."""


class LiveCluster:
    """The nodes of a cluster, and its pods that have not ended."""

    def __init__(self, client: Client, clock: Clock, title: str) -> None:
        self._client = client
        self._clock = clock
        self._title = title
        self._is_batch_due = False
        self._features: list[Feature] = []
        self.timeline = Timeline(lambda: clock.utc_now().timestamp())
        self.nodes: Informer[Any] = Informer(client, NODE, clock, decode=decoder(Node))
        self.pods: Informer[Any] = Informer(client, POD, clock, decode=decoder(Pod), query=UNFINISHED_PODS)
        self.nodes.listeners.append(self._node_changed)
        self.pods.listeners.append(self._pod_changed)

    def info(self) -> SourceInfo:
        """What this is."""
        features = ("history", *(each.name for each in self._features))
        return SourceInfo(
            kind="cluster", title=self._title, live=True, features=features, version=__version__
        )

    def add(self, feature: Feature) -> None:
        """Let something more be asked; before the page is served."""
        self._features.append(feature)

    def routes(self) -> dict[str, Handler]:
        """The documents of its features."""
        return {path: handler for each in self._features for path, handler in each.routes.items()}

    async def check(self) -> None:
        """InputError if nodes or pods may not be read; also RequestError and ConnectionFailed."""
        for kind in (NODE, POD):
            await self._check(kind)

    async def _check(self, kind: Kind) -> None:
        try:
            await self._client.exchange("GET", kind.path(), {"limit": 1})
        except RequestError as error:
            if error.code == HTTPStatus.FORBIDDEN:
                raise InputError("", forbidden_text([kind], "list", error.message)) from None
            raise

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.nodes.run())
            tasks.create_task(self.pods.run())
            for each in self._features:
                if each.work is not None:
                    tasks.create_task(each.work())

    async def synced(self) -> None:
        """Returns when all nodes and pods are known."""
        await asyncio.gather(self.nodes.synced(), self.pods.synced())
        self._close_batch()

    def _node_changed(self, type: EventType, obj: Object, before: Object | None) -> None:
        assert isinstance(obj, Node)
        self.timeline.put_node(obj.name, None if type == "DELETED" else node_state(obj))
        self._batch_soon()

    def _pod_changed(self, type: EventType, obj: Object, before: Object | None) -> None:
        assert isinstance(obj, Pod)
        self.timeline.put_pod(obj.key, None if type == "DELETED" else pod_state(obj))
        self._batch_soon()

    def _batch_soon(self) -> None:
        if not self._is_batch_due:
            self._is_batch_due = True
            self._clock.call_later(_BATCH_SECONDS, self._close_batch)

    def _close_batch(self) -> None:
        self._is_batch_due = False
        self.timeline.close_batch()
