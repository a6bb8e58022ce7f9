"""Many small requests over few connections: concurrent ones are sent together, without waiting.

A request alone in its packet costs client and server some 40 µs of CPU time each in overhead: system calls,
TLS records, waking up. Eight together cost less than two alone. But a server
answers the requests of a connection one after the other, so only as many are sent together as it answers
within `_GROUP_SECONDS`; the others use other connections. The server's speed is measured by the time between
its answers: those that arrive together with the first count as no time.

Requests that are not urgent, such as events, can be batched for longer while they are frequent.

Without pipelining, a connection has one request under way, and others wait until a connection is free.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from moorage.http.batching import BatchWindow
from moorage.http.client_connection import HttpClientConnection
from moorage.http.errors import ConnectionFailed
from moorage.http.pool import ConnectionPool
from moorage.http.transport import Response

MAX_GROUP_SIZE: Final = 32
"""Maximum requests in flight on one connection with pipelining."""
MAX_GROUPS: Final = 16
"""Maximum connections with groups in flight. The limit starts at one and doubles with each answer, so that an
initial burst does not open connections that a fast server does not need."""
_GROUP_SECONDS: Final = 0.01
"""Target for the time that a request waits for earlier ones on its connection, in seconds."""
_RECOVERY: Final = 0.05
"""Increase of the group size per single answer: after 20 of them, two requests together are tried."""


_Waiting = tuple[bytes, asyncio.Future[Response]]
"""An encoded request, and the future of its answer."""


class Pipeline:
    """Sends requests in groups."""

    def __init__(
        self,
        pool: ConnectionPool,
        idle_seconds: float,
        gather_seconds: float = 0.0,
        limit: int = MAX_GROUP_SIZE,
        before_sending: Callable[[], None] | None = None,
    ) -> None:
        """Make one; `limit` is the most requests under way on one connection, 1 for no pipelining.

        before_sending: called immediately before requests leave, however long they have waited.
        """
        self._loop = asyncio.get_running_loop()
        self._pool = pool
        self._idle_seconds = idle_seconds
        self._waiting: deque[_Waiting] = deque()
        self._groups = 0
        self._opening: set[asyncio.Task[HttpClientConnection]] = set()
        """Number of connections that are being opened."""
        self._is_due = False
        self._batch_window = BatchWindow(gather_seconds)
        self._most_groups = 1
        self._limit = limit
        self._before_sending = before_sending
        self._most_together = min(2.0, limit)
        self._recovery = _RECOVERY

    def ask(self, request: bytes) -> asyncio.Future[Response]:
        """Send a request, together with others; the answer, or ConnectionFailed."""
        answer: asyncio.Future[Response] = self._loop.create_future()
        # Without pipelining there is nothing to wait for if a connection is idle.
        if self._limit > 1 or self._waiting or not self._sent_alone(request, answer):
            self._waiting.append((request, answer))
            self._send_soon()
        return answer

    def _sent_alone(self, request: bytes, answer: asyncio.Future[Response]) -> bool:
        """Send a request over an idle connection; returns whether there was one."""
        connection = self._pool.take_idle() if self._groups < self._most_groups else None
        if connection is None:
            return False
        self._send_over(connection, request, (answer,))
        return True

    def _send_soon(self) -> None:
        """Send once all tasks that are ready to run have added their requests."""
        if not self._is_due:
            self._is_due = True
            wait_seconds = self._batch_window.wait_seconds(self._loop.time())
            if wait_seconds:
                self._loop.call_later(wait_seconds, self._send)
            else:
                self._loop.call_soon(self._send)

    def _send(self) -> None:
        self._is_due = False
        while self._waiting and self._groups < self._most_groups:
            connection = self._pool.take_idle()
            if connection is None:
                break
            self._send_group(connection)
        to_open = -(-len(self._waiting) // int(self._most_together)) - len(self._opening)
        for _ in range(min(to_open, self._most_groups - self._groups - len(self._opening))):
            task = self._loop.create_task(self._pool.connect())
            self._opening.add(task)
            task.add_done_callback(self._opened)

    def _opened(self, task: asyncio.Task[HttpClientConnection]) -> None:
        """Use a new connection for waiting requests; if it could not be opened, fail some of them."""
        self._opening.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self._pool.give_back(task.result())
        elif isinstance(error, ConnectionFailed):
            self._refuse(self._next_group(), error)
        else:
            raise error
        self._send_soon()

    def _refuse(self, group: Iterable[_Waiting], error: ConnectionFailed) -> None:
        for _, answer in group:
            answer.set_exception(type(error)(str(error)))

    def close(self) -> None:
        """Fail the requests that still wait for a connection."""
        for task in self._opening:
            task.cancel()
        while group := self._next_group():
            self._refuse(group, ConnectionFailed("the connection was closed"))

    def _next_group(self) -> list[_Waiting]:
        group: list[_Waiting] = []
        while self._waiting and len(group) < int(self._most_together):
            waiting = self._waiting.popleft()
            if not waiting[1].done():  # Otherwise the caller was cancelled.
                group.append(waiting)
        return group

    def _send_group(self, connection: HttpClientConnection) -> None:
        group = self._next_group()
        if not group:
            self._pool.give_back(connection)
            return
        data = b"".join([request for request, _ in group])
        self._send_over(connection, data, [answer for _, answer in group])

    def _send_over(
        self, connection: HttpClientConnection, data: bytes, answers: Sequence[asyncio.Future[Response]]
    ) -> None:
        if self._before_sending is not None:
            self._before_sending()
        self._groups += 1
        answered = partial(self._answered, connection, len(answers))
        connection.send(data, answers, self._idle_seconds, answered)

    def _answered(self, connection: HttpClientConnection, count: int) -> None:
        """A group of requests is answered, or has failed."""
        self._groups -= 1
        if self._limit > 1:
            self._learn(count, connection)
        self._most_groups = min(2 * self._most_groups, MAX_GROUPS)
        self._pool.give_back(connection)
        if self._waiting:
            # Not now: what follows in the connection's buffer must not answer a request that is sent now.
            self._send_soon()

    def _learn(self, count: int, connection: HttpClientConnection) -> None:
        """Adjust the size of groups to how one was answered."""
        took_seconds = connection.answers_took_seconds
        if count > 1 and not connection.is_reusable:
            # Some servers answer one request per connection; pipelining is tried less and less often.
            wanted = 1.0
            self._recovery /= 2
        elif count == 1:
            wanted = self._most_together + self._recovery
        elif took_seconds > _GROUP_SECONDS:
            wanted = count * _GROUP_SECONDS / took_seconds
        else:
            wanted = max(self._most_together, 2.0 * count)
        self._most_together = min(max(wanted, 1.0), self._limit)
