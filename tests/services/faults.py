"""A cluster in this process under virtual time, several clients, and what can go wrong between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from random import Random

from moorage.client.client import Client
from moorage.clock import Clock, Timer, VirtualClock
from moorage.http.errors import AnswerLost, ConnectionFailed
from moorage.http.transport import Request, Response, Transport
from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from tests.apiserver.client import START, settled

SERVER_ERROR = b'{"kind":"Status","status":"Failure","reason":"InternalError","message":"broken","code":500}'
CONFLICT = b'{"kind":"Status","status":"Failure","reason":"Conflict","message":"changed","code":409}'


class ServerHarness:
    """An API server and virtual time."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.clock = VirtualClock(epoch=START)
        self.server = EmbeddedServer(settings, clock=self.clock, random=Random(1))

    def client(self, transport: Transport | None = None, token: str = "") -> Client:
        return Client(transport or self.server.api, token or self.server.token)

    async def pass_time(self, seconds: float, step_seconds: float = 0.25) -> None:
        """Let time pass in small steps, and what it causes happen."""
        await settled()
        for _ in range(round(seconds / step_seconds)):
            self.clock.advance(step_seconds)
            await settled()


class Link:
    """A connection to a server that can be cut, delayed and broken by a plan."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self.plan: Callable[[Request], str]
        """What happens: "", "refused", "lost", "500", "409", "late", "late answer", "captive portal"."""
        self.heal()
        self.late_seconds = 1.0
        self.requests: list[tuple[str, str]] = []

    def heal(self) -> None:
        """Nothing bad happens any more."""
        self.plan = lambda request: ""

    async def handle(self, request: Request) -> Response:
        self.requests.append((request.method, request.path))
        outcome = self.plan(request)
        if outcome == "refused":
            raise ConnectionFailed("cannot be reached")
        if outcome == "500":
            return Response(500, SERVER_ERROR)
        if outcome == "captive portal":
            return Response(200, b"<html>Log in</html>", "text/html")
        if outcome == "409":
            return Response(409, CONFLICT)
        if outcome == "late":
            await waited(self._clock, self.late_seconds)
        response = await self._transport.handle(request)
        if outcome == "lost":
            raise AnswerLost("the connection broke")
        if outcome == "late answer":
            await waited(self._clock, self.late_seconds)
        return response


async def waited(clock: Clock, seconds: float) -> None:
    woken = asyncio.Event()
    clock.call_later(seconds, woken.set)
    await woken.wait()


class PausableClock:
    """A process's clock: while the process is suspended time goes on, but it notices nothing."""

    is_virtual = True

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._missed: list[Callable[[], None]] | None = None

    def now(self) -> float:
        return self._clock.now()

    def utc_now(self) -> datetime:
        return self._clock.utc_now()

    def call_later(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        timer = _PausableTimer(self, callback)
        timer.inner = self._clock.call_later(delay_seconds, timer.fire)
        return timer

    def suspend(self) -> None:
        if self._missed is None:
            self._missed = []

    def resume(self) -> None:
        missed, self._missed = self._missed or [], None
        for callback in missed:
            callback()

    def run(self, callback: Callable[[], None]) -> None:
        if self._missed is None:
            callback()
        else:
            self._missed.append(callback)

    async def awake(self) -> None:
        """Returns once the process runs."""
        if self._missed is not None:
            woken = asyncio.Event()
            self._missed.append(woken.set)
            await woken.wait()


class _PausableTimer:
    def __init__(self, clock: PausableClock, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._callback: Callable[[], None] | None = callback
        self.inner: Timer | None = None

    def fire(self) -> None:
        self._clock.run(self._act)

    def _act(self) -> None:
        if self._callback is not None:
            self._callback()

    def cancel(self) -> None:
        self._callback = None
        if self.inner is not None:
            self.inner.cancel()


class PausableLink(Link):
    """A link of a process that may be suspended: then neither requests go out nor answers come in."""

    def __init__(self, transport: Transport, clock: PausableClock) -> None:
        super().__init__(transport, clock)
        self._process = clock

    async def handle(self, request: Request) -> Response:
        await self._process.awake()
        try:
            response = await super().handle(request)
        except ConnectionFailed:
            await self._process.awake()
            raise
        await self._process.awake()
        return response
