"""Binding a pod once: where the answer does not say what happened, the pod does."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

from moorage.api.pod import Pod
from moorage.client.client import Answer, Client
from moorage.client.kinds import POD
from moorage.client.waiting import Backoff, sleep
from moorage.clock import Clock
from moorage.http.errors import AnswerLost, ConnectionFailed, NoAccess, RequestError

_MOST_AT_ONCE: Final = 128
"""So many bindings are written at the same time; the others wait for their turn, in order."""
_FIRST_PAUSE_SECONDS: Final = 0.2
_LONGEST_PAUSE_SECONDS: Final = 5.0
_SERVER_ERROR: Final = 500
_COME_BACK: Final = 429


class Binder:
    """Writes bindings."""

    def __init__(self, client: Client, clock: Clock, random: Random) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._slots = asyncio.Semaphore(_MOST_AT_ONCE)

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Bind a pod to a node; raises if it is not bound there, or if somebody else has bound it."""
        try:
            async with self._slots:
                await self._written(pod, node_name)
        except RequestError as error:
            # A conflict may be with ourselves: an earlier request that seemed to be lost.
            may_be_bound = error.is_conflict or error.code >= _SERVER_ERROR
            if not may_be_bound or not await self._is_on(pod, node_name):
                raise
        except AnswerLost:
            if not await self._is_on(pod, node_name):
                raise

    def _written(self, pod: Pod, node_name: str) -> Answer[None]:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"kind": "Node", "name": node_name},
        }
        return self._client.create_part(POD, pod.namespace, pod.name, "binding", binding)

    async def _is_on(self, pod: Pod, node_name: str) -> bool:
        """Whether a pod is on a node, by the server's word; asks until there is an answer."""
        backoff = Backoff(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, self._random)
        while True:
            try:
                stored = await self._client.get(POD, pod.namespace, pod.name)
            except RequestError as error:
                if error.is_not_found:
                    return False
                if error.code < _SERVER_ERROR and error.code != _COME_BACK:
                    raise
            except NoAccess:
                raise
            except ConnectionFailed:
                pass
            else:
                is_same = stored["metadata"]["uid"] == pod.uid
                return bool(is_same and stored["spec"].get("nodeName", "") == node_name)
            await sleep(self._clock, backoff.pause())
