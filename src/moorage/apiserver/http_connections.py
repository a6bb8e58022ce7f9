"""All connections of a server: how many there may be, and how long a client may keep the server waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from enum import Enum, auto
from typing import Any, Final, Protocol


class Waiting(Enum):
    """What a connection waits for."""

    FOR_NOTHING = auto()
    """An answer is under way."""
    FOR_HEAD = auto()
    """The head of a request has begun; of the first one it has when there is a connection."""
    FOR_BODY = auto()
    FOR_REQUEST = auto()
    """The next one, if there will be one."""
    FOR_SPACE = auto()
    """The client does not read what it is sent."""


_MOST_SECONDS: Final = {
    Waiting.FOR_HEAD: 32.0,
    Waiting.FOR_REQUEST: 90.0,
    Waiting.FOR_BODY: 60.0,
    Waiting.FOR_SPACE: 60.0,
}
"""The first two are kube-apiserver's; the others are the time that it has for a request."""
_DISPENSABLE: Final = (Waiting.FOR_HEAD, Waiting.FOR_BODY, Waiting.FOR_REQUEST)


class Connection(Protocol):
    """One of them."""

    def waiting(self) -> tuple[Waiting, int]:
        """What is awaited of the client, and a number that changes when it does something for it."""

    @property
    def is_outrun(self) -> bool:
        """Whether the client is too far behind ever to be sent all there is."""

    def finish(self) -> None:
        """Close once what is under way is answered; a stream ends now."""

    def abort(self) -> None:
        """Close at once."""


class Connections:
    """Those that are open, and those over which TLS is not yet spoken, in the order in which they came."""

    def __init__(self, max_connections: int) -> None:
        self._max_connections = max_connections
        self._open: dict[Connection, _Wait] = {}
        self._opening: dict[asyncio.Task[None], None] = {}
        self._one_less = asyncio.Event()
        self._all_closed = asyncio.Event()
        self._all_closed.set()

    async def room(self) -> None:
        """Returns once there may be one more; the one that has waited longest for its client makes room."""
        while len(self._open) + len(self._opening) >= self._max_connections:
            self._one_less.clear()
            self._dispense()
            await self._one_less.wait()

    def open(self, opening: Coroutine[Any, Any, None]) -> None:
        """There is one more, as soon as both sides speak TLS."""
        task = asyncio.get_running_loop().create_task(opening)
        self._opening[task] = None
        task.add_done_callback(self._opened)

    def _opened(self, task: asyncio.Task[None]) -> None:
        del self._opening[task]
        self._one_less.set()
        if not task.cancelled():
            task.result()

    def add(self, connection: Connection) -> None:
        """There is one more."""
        self._open[connection] = _Wait()
        self._all_closed.clear()

    def remove(self, connection: Connection) -> None:
        """One is no more, and nothing is done for it."""
        self._open.pop(connection, None)
        self._one_less.set()
        if not self._open:
            self._all_closed.set()

    def pass_time(self, seconds: float) -> None:
        """So much time has passed since the last call: let go of those that have waited for too long."""
        for connection, wait in list(self._open.items()):
            now = connection.waiting()
            wait.seconds = wait.seconds + seconds if wait.last == now else 0.0
            wait.last = now
            is_over = wait.seconds >= _MOST_SECONDS.get(now[0], float("inf"))
            if now[0] is Waiting.FOR_REQUEST and is_over:
                connection.finish()
            elif is_over or (now[0] is Waiting.FOR_SPACE and connection.is_outrun):
                connection.abort()

    def _dispense(self) -> None:
        idle = [one for one in self._open if one.waiting()[0] in _DISPENSABLE]
        if idle:
            max(idle, key=lambda one: self._open[one].seconds).abort()
        elif self._opening:
            next(iter(self._opening)).cancel()

    async def close(self, grace_seconds: float) -> None:
        """End streams and close all connections, once they have their answers or after that long."""
        for task in list(self._opening):
            task.cancel()
        for connection in list(self._open):
            connection.finish()
        try:
            async with asyncio.timeout(grace_seconds):
                await self._all_closed.wait()
        except TimeoutError:
            for connection in list(self._open):
                connection.abort()
            await self._all_closed.wait()


class _Wait:
    """How long a connection has waited for the same thing."""

    def __init__(self) -> None:
        self.last = (Waiting.FOR_NOTHING, -1)
        self.seconds = 0.0
