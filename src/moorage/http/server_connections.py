"""All connections of a server: their maximum number, and how long the server waits for a client."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from enum import Enum, auto
from typing import Any, Final, Protocol

from moorage.http.in_flight import InFlightLimits


class WaitReason(Enum):
    """What a connection waits for."""

    FOR_NOTHING = auto()
    """An answer in progress."""
    FOR_HEAD = auto()
    """The rest of a request's head; on a new connection, the whole of the first one."""
    FOR_BODY = auto()
    FOR_REQUEST = auto()
    """The next request on an idle connection."""
    FOR_SPACE = auto()
    """Space in the send buffer: the client does not read its answers."""


_MAX_SECONDS: Final = {
    WaitReason.FOR_HEAD: 32.0,
    WaitReason.FOR_REQUEST: 90.0,
    WaitReason.FOR_BODY: 60.0,
    WaitReason.FOR_SPACE: 60.0,
}
"""Maximum waiting times: the first two are kube-apiserver's, the others its time limit of a request."""
_IDLE_STATES: Final = (WaitReason.FOR_HEAD, WaitReason.FOR_BODY, WaitReason.FOR_REQUEST)


class ServedConnection(Protocol):
    """One connection."""

    def waiting(self) -> tuple[WaitReason, int]:
        """What the client has to do next, and a number that changes when it makes progress."""

    @property
    def is_slow_reader(self) -> bool:
        """Whether it sends a stream that can no longer be completed."""

    def finish(self) -> None:
        """Close once requests in flight are answered; a stream ends now."""

    def abort(self) -> None:
        """Close at once."""


class Connections:
    """The open connections, and those in their TLS handshake, in the order in which they were accepted."""

    def __init__(self, max_connections: int, limits: InFlightLimits | None = None) -> None:
        self.limits = limits
        """How many requests are answered at a time; None: any number."""
        self._max_connections = max_connections
        self._open: dict[ServedConnection, _Wait] = {}
        self._opening: dict[asyncio.Task[None], None] = {}
        self._one_less = asyncio.Event()
        self._all_closed = asyncio.Event()
        self._all_closed.set()

    async def room(self) -> None:
        """Wait until one more is allowed; at the maximum, the one that is idle for longest is closed."""
        while len(self._open) + len(self._opening) >= self._max_connections:
            self._one_less.clear()
            self._close_idle()
            await self._one_less.wait()

    def open(self, opening: Coroutine[Any, Any, None]) -> None:
        """Accept a connection; `opening` is its TLS handshake."""
        task = asyncio.get_running_loop().create_task(opening)
        self._opening[task] = None
        task.add_done_callback(self._opened)

    def _opened(self, task: asyncio.Task[None]) -> None:
        del self._opening[task]
        self._one_less.set()
        if not task.cancelled():
            task.result()

    def add(self, connection: ServedConnection) -> None:
        """Add an open connection."""
        self._open[connection] = _Wait()
        self._all_closed.clear()

    def remove(self, connection: ServedConnection) -> None:
        """Remove a connection that is closed and has no request left."""
        self._open.pop(connection, None)
        self._one_less.set()
        if not self._open:
            self._all_closed.set()

    def pass_time(self, seconds: float) -> None:
        """Add the seconds since the last call to all waiting times; close connections that exceed theirs."""
        for connection, wait in list(self._open.items()):
            now = connection.waiting()
            wait.seconds = wait.seconds + seconds if wait.last == now else 0.0
            wait.last = now
            is_over = wait.seconds >= _MAX_SECONDS.get(now[0], float("inf"))
            if now[0] is WaitReason.FOR_REQUEST and is_over:
                connection.finish()
            elif is_over or (now[0] is WaitReason.FOR_SPACE and connection.is_slow_reader):
                connection.abort()

    def _close_idle(self) -> None:
        idle = [one for one in self._open if one.waiting()[0] in _IDLE_STATES]
        if idle:
            max(idle, key=lambda one: self._open[one].seconds).abort()
        elif self._opening:
            next(iter(self._opening)).cancel()

    async def close(self, grace_seconds: float) -> None:
        """End streams, and close each connection when its requests are answered or the time is over."""
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
        self.last = (WaitReason.FOR_NOTHING, -1)
        self.seconds = 0.0
