"""Binds each pod once: where a response is lost, the stored pod shows whether it is bound."""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from typing import Final

from moorage.api.pod import Pod
from moorage.backoff import Backoff
from moorage.client.client import Answer, Client
from moorage.client.kinds import POD
from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.http.errors import AnswerLost, ConnectionFailed, NoAccess, RequestError

_MAX_CONCURRENT_WRITES: Final = 128
"""Maximum number of bindings written at a time; others wait in order."""
_INITIAL_BACKOFF_SECONDS: Final = 0.2
_MAX_BACKOFF_SECONDS: Final = 5.0
_SERVER_ERROR: Final = 500
_TOO_MANY_REQUESTS: Final = 429


class Binder:
    """Writes bindings."""

    def __init__(self, client: Client, clock: Clock, random: Random) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._writing = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind a pod to a node; raises if it is not bound there, or if another scheduler has bound it."""
        try:
            while self._writing >= _MAX_CONCURRENT_WRITES:
                await self._slot()
            self._writing += 1
            try:
                await self._written(pod, node_name)
            finally:
                self._writing -= 1
                self._wake_next()
        except RequestError as error:
            # The conflict may be with our own earlier request whose response was lost.
            may_be_bound = error.is_conflict or error.code >= _SERVER_ERROR
            if not may_be_bound or not await self._is_on(pod, node_name):
                raise
        except AnswerLost:
            if not await self._is_on(pod, node_name):
                raise

    async def _slot(self) -> None:
        """Returns when there may be a slot; cheaper than a semaphore where there mostly is one."""
        free: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(free)
        try:
            await free
        except asyncio.CancelledError:
            self._wake_next()
            raise

    def _wake_next(self) -> None:
        while self._waiting:
            free = self._waiting.popleft()
            if not free.done():
                free.set_result(None)
                return

    def _written(self, pod: Pod, node_name: str) -> Answer[None]:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"kind": "Node", "name": node_name},
        }
        return self._client.create_part(POD, pod.namespace, pod.name, "binding", binding)

    async def _is_on(self, pod: Pod, node_name: str) -> bool:
        """Whether the stored pod is on a node; retries until there is a response."""
        backoff = Backoff(_INITIAL_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS, self._random)
        while True:
            try:
                stored = await self._client.get(POD, pod.namespace, pod.name)
            except RequestError as error:
                if error.is_not_found:
                    return False
                if error.code < _SERVER_ERROR and error.code != _TOO_MANY_REQUESTS:
                    raise
            except NoAccess:
                raise
            except ConnectionFailed:
                pass
            else:
                is_same = stored["metadata"]["uid"] == pod.uid
                return bool(is_same and stored["spec"].get("nodeName", "") == node_name)
            await sleep(self._clock, backoff.next_seconds())
