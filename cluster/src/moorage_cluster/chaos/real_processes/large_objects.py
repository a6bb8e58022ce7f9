"""Large objects, which a full disk has no room for: written until one is refused, and deleted afterwards."""

from __future__ import annotations

import asyncio
from typing import Final

from moorage.client.client import Client
from moorage.client.kinds import CONFIG_MAP
from moorage.http.errors import AnswerLost, ConnectionFailed, RequestError

_NAMESPACE: Final = "default"
_LETTERS: Final = 200_000
_PAUSE_SECONDS: Final = 0.1
_NOT_FOUND: Final = 404
_UNKNOWN: Final = (ConnectionFailed, AnswerLost, TimeoutError)


class LargeObjects:
    """ConfigMaps, and whether their creation was acknowledged."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._count = 0
        self._acknowledged: dict[str, bool] = {}

    async def write_until_refused(self, client: Client) -> RequestError:
        """Create one after another; returns why one was refused."""
        while True:
            self._count += 1
            name = f"{self._prefix}-{self._count}"
            manifest = {"metadata": {"name": name}, "data": {"text": "x" * _LETTERS}}
            try:
                await client.create(CONFIG_MAP, _NAMESPACE, manifest)
                self._acknowledged[name] = True
            except _UNKNOWN:
                self._acknowledged[name] = False
                await asyncio.sleep(_PAUSE_SECONDS)
            except RequestError as error:
                return error

    async def delete(self, client: Client) -> list[str]:
        """Delete all of them; returns the names of those that are gone although they were acknowledged."""
        lost = []
        for name, is_acknowledged in list(self._acknowledged.items()):
            if not await self._deleted(client, name) and is_acknowledged:
                lost.append(name)
            self._acknowledged.pop(name, None)
        return lost

    async def _deleted(self, client: Client, name: str) -> bool:
        """Delete one; returns whether it was there."""
        is_unknown = False
        while True:
            try:
                await client.delete(CONFIG_MAP, _NAMESPACE, name)
                return True
            except _UNKNOWN:
                is_unknown = True
                await asyncio.sleep(_PAUSE_SECONDS)
            except RequestError as error:
                if error.code == _NOT_FOUND:
                    return is_unknown
                await asyncio.sleep(_PAUSE_SECONDS)
