"""Kubelets and controllers, as far as scheduling sees them.

Pods run, and stop when they or their node are deleted; claims of deleted pods are released.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from moorage.api.manifests import Manifest, timestamp
from moorage.client.client import Client
from moorage.client.kinds import POD, RESOURCE_CLAIM
from moorage.clock import Clock
from moorage.http.errors import ConnectionFailed, RequestError
from moorage_cluster.apiserver.store import Change, Collection, Store

_START_SECONDS: Final = 0.5
_STOP_SECONDS: Final = 1.0
_RELEASE_SECONDS: Final = 0.5
_RETRY_SECONDS: Final = 2.0


class Kubelets:
    """The kubelets of all nodes."""

    def __init__(self, clock: Clock, client: Callable[[], Client]) -> None:
        self._clock = clock
        self._client = client
        self._known: dict[str, Manifest] = {}
        """Pods with a node, by uid."""
        self._stopping: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def attach(self, store: Store) -> None:
        """Follow a server's store from now on."""
        store.listeners.append(self.changed)

    def changed(self, collection: Collection, change: Change) -> None:
        """Something was written."""
        if collection.name == "/pods":
            self._pod_changed(change)
        elif collection.name == "/nodes" and change.type == "DELETED":
            name = change.stored.obj["metadata"]["name"]
            for pod in [each for each in self._known.values() if each["spec"]["nodeName"] == name]:
                self._stop_later(pod)

    def _pod_changed(self, change: Change) -> None:
        pod = change.stored.obj
        uid = pod["metadata"]["uid"]
        if change.type == "DELETED":
            self._known.pop(uid, None)
            self._stopping.discard(uid)
            for name in _claims(pod):
                self._clock.call_later(_RELEASE_SECONDS, partial(self._begin, self._release, pod, name))
        elif pod["spec"].get("nodeName"):
            if uid not in self._known:
                self._clock.call_later(_START_SECONDS, partial(self._begin, self._start, pod))
            self._known[uid] = pod
            if pod["metadata"].get("deletionTimestamp"):
                self._stop_later(pod)

    def _stop_later(self, pod: Manifest) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self._stopping:
            self._stopping.add(uid)
            self._clock.call_later(_STOP_SECONDS, partial(self._begin, self._stop, pod))

    async def _release(self, pod: Manifest, name: str) -> None:
        """Take a pod from the consumers of its claim; without any, the claim is deallocated."""
        namespace, uid = pod["metadata"]["namespace"], pod["metadata"]["uid"]
        try:
            claim = await self._client().get(RESOURCE_CLAIM, namespace, name)
            consumers = (claim.get("status") or {}).get("reservedFor") or []
            left = [each for each in consumers if each["uid"] != uid]
            status: Manifest = {"reservedFor": left} if left else {"reservedFor": None, "allocation": None}
            await self._client().patch(RESOURCE_CLAIM, namespace, name, {"status": status}, "merge", "status")
        except ConnectionFailed:
            self._clock.call_later(_RETRY_SECONDS, partial(self._begin, self._release, pod, name))
        except RequestError:
            return  # The claim is gone.

    def _begin(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        task = asyncio.ensure_future(work(*arguments))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self, pod: Manifest) -> None:
        meta = pod["metadata"]
        status: Manifest = {"phase": "Running", "startTime": timestamp(self._clock.utc_now())}
        status["conditions"] = [{"type": "Ready", "status": "True"}]
        patch = {"metadata": {"uid": meta["uid"]}, "status": status}
        try:
            await self._client().patch(POD, meta["namespace"], meta["name"], patch, "strategic", "status")
        except (RequestError, ConnectionFailed):
            return  # It was deleted, or the server is away: what runs is not told then.

    async def _stop(self, pod: Manifest) -> None:
        meta = pod["metadata"]
        try:
            await self._client().delete(
                POD, meta["namespace"], meta["name"], uid=meta["uid"], grace_seconds=0
            )
        except ConnectionFailed:
            self._clock.call_later(_RETRY_SECONDS, partial(self._begin, self._stop, pod))
        except RequestError:
            return  # It is gone already.


def _claims(pod: Manifest) -> list[str]:
    return [each["resourceClaimName"] for each in pod["spec"].get("resourceClaims") or ()]
