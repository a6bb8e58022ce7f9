"""The nodes of an API server, for the events of a script: what is done to them are requests, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from http import HTTPStatus
from typing import Any, Final

from moorage.api.decode import InputError, convert
from moorage.api.manifests import Manifest
from moorage.api.node import Node
from moorage.client.client import Client
from moorage.client.kinds import NODE, POD
from moorage.http.errors import RequestError
from moorage.scheduler.encoding import plain
from moorage_cluster.apiserver.store import Store
from moorage_cluster.controllers.cluster import controller_of

_RETRY_SECONDS: Final = 5.0
"""Interval at which a drain evicts again what a disruption budget protects, as `kubectl drain` does."""
_ENDED: Final = ("Succeeded", "Failed")


class ServedNodes:
    """The nodes in the store of a server."""

    def __init__(self, store: Store, client: Client) -> None:
        self._store = store
        self._client = client
        self._work: asyncio.Queue[Coroutine[Any, Any, str | None]] = asyncio.Queue()
        self._drains: dict[str, bool] = {}
        """The nodes that are drained: whether disruption budgets have protected all pods that are left."""
        self._is_working = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being done, and every drain waits for a disruption budget."""
        return self._work.empty() and not self._is_working and all(self._drains.values())

    async def run(self) -> None:
        """Do what is asked for, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                work = await self._work.get()
                self._is_working = True
                try:
                    drained = await work
                except RequestError as error:
                    raise InputError("script", error.message) from None
                if drained is not None:
                    tasks.create_task(self._drain(drained))
                self._is_working = False

    def all(self) -> list[Node]:
        """All nodes."""
        return [convert(obj, Node) for obj in self._store.all("/nodes")]

    def create(self, node: Node) -> None:
        """Add a node."""
        self._work.put_nowait(self._create(node))

    def cordon(self, node: Node, is_cordoned: bool) -> None:
        """Let no new pods come to a node, or let them."""
        self._work.put_nowait(self._cordon(node.name, is_cordoned))

    def drain(self, node: Node) -> None:
        """Cordon a node, and evict its pods, but for those of DaemonSets."""
        self._work.put_nowait(self._begin_drain(node.name))

    def remove(self, node: Node) -> None:
        """Remove a node; it and its pods are gone at once."""
        self._drains.pop(node.name, None)
        self._work.put_nowait(self._remove(node.name))

    async def _create(self, node: Node) -> None:
        obj = plain(node)
        for key in ("uid", "resourceVersion", "creationTimestamp", "generation"):
            obj["metadata"].pop(key, None)
        await self._client.create(NODE, "", {"apiVersion": "v1", "kind": "Node", **obj})

    async def _cordon(self, name: str, is_cordoned: bool) -> None:
        patch = {"spec": {"unschedulable": is_cordoned or None}}
        await self._client.patch(NODE, "", name, patch, "merge")

    async def _remove(self, name: str) -> None:
        await self._client.delete(NODE, "", name)
        for meta in [pod["metadata"] for pod in self._pods_on(name)]:
            await self._client.delete(POD, meta["namespace"], meta["name"], grace_seconds=0)

    def _pods_on(self, name: str) -> Iterator[Manifest]:
        return (pod for pod in self._store.all("/pods") if pod["spec"].get("nodeName") == name)

    # -- draining

    async def _begin_drain(self, name: str) -> str | None:
        """Cordon a node; returns its name unless it is being drained already."""
        await self._cordon(name, True)
        is_new = name not in self._drains
        self._drains[name] = False
        return name if is_new else None

    async def _drain(self, name: str) -> None:
        while name in self._drains:
            pods = [pod for pod in self._pods_on(name) if _is_evicted(pod)]
            if not pods:
                del self._drains[name]
                return
            evicted = [await self._evict(pod) for pod in pods]
            self._drains[name] = not any(evicted)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _evict(self, pod: Manifest) -> bool:
        """Evict a pod; False if a disruption budget protects it."""
        meta = {key: pod["metadata"][key] for key in ("name", "namespace")}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
        try:
            await self._client.create_part(POD, meta["namespace"], meta["name"], "eviction", eviction)
        except RequestError as error:
            if error.code == HTTPStatus.TOO_MANY_REQUESTS:
                return False
            if not error.is_not_found:
                raise
        return True


def _is_evicted(pod: Manifest) -> bool:
    """Whether a drain evicts a pod: not if it has ended or is ending, or would come back at once."""
    meta, owner = pod["metadata"], controller_of(pod)
    has_ended = "deletionTimestamp" in meta or (pod.get("status") or {}).get("phase") in _ENDED
    return not has_ended and (owner is None or owner["kind"] not in ("DaemonSet", "Node"))
