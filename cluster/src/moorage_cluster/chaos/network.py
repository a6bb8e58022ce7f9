"""A transport between a scheduler and the API server on which the requests of a script fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

import msgspec

from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.http.errors import AnswerLost, ConnectionFailed
from moorage.http.transport import Request, Response, Transport
from moorage_cluster.chaos.script import Fault, RequestFault, RequestFaultKind, WatchFault
from moorage_cluster.chaos.traffic import LIST, class_of, resource_of
from moorage_cluster.chaos.watch_faults import EventNumber, FaultyWatch

HUNG_SECONDS: Final = 60.0
"""How long a client waits for an answer before it gives a connection up, in seconds."""
_REASONS: Final = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}
_UNAVAILABLE: Final = "ServiceUnavailable"


class FaultyTransport:
    """The way of one scheduler process to the API server.

    injected: counts what has been injected. issued: called with every request before it is sent.
    is_calm: whether faults have stopped.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        faults: Iterable[Fault],
        injected: Counter[str],
        issued: Callable[[str, Request], None],
        is_calm: Callable[[], bool],
    ) -> None:
        self.is_dead = False
        """Whether the process has ended: nothing leaves it any more."""
        self._transport = transport
        self._clock = clock
        self._requests: dict[tuple[str, int], RequestFault] = {}
        self._events: dict[tuple[str, int], WatchFault] = {}
        for each in faults:
            if isinstance(each, RequestFault):
                self._requests[each.request, each.number] = each
            elif isinstance(each, WatchFault):
                self._events[each.resource, each.number] = each
        self._injected = injected
        self._issued = issued
        self._is_calm = is_calm
        self._counts: Counter[str] = Counter()
        self._event_numbers: dict[str, EventNumber] = {}
        self._lists: dict[str, Response] = {}
        """The first list of each resource."""

    async def handle(self, request: Request) -> Response:
        """The answer, or what the script has in its place."""
        if self.is_dead:
            raise asyncio.CancelledError("the process has ended")
        what = class_of(request)
        self._issued(what, request)
        fault = self._next_fault(what)
        if fault is None:
            return await self._answer(what, request)
        self._injected[f"{what}: {fault.fault}"] += 1
        return await self._faulty_answer(what, request, fault)

    def _next_fault(self, what: str) -> RequestFault | None:
        number = self._counts[what]
        self._counts[what] += 1
        return None if self._is_calm() else self._requests.get((what, number))

    async def _faulty_answer(self, what: str, request: Request, fault: RequestFault) -> Response:
        match fault.fault:
            case "unreachable":
                raise ConnectionFailed("injected: connection refused")
            case "reset-before":
                raise AnswerLost("injected: connection reset")
            case "reset-after":
                _close(await self._answer(what, request))
                raise AnswerLost("injected: connection reset")
            case "twice":
                _close(await self._answer(what, request))
                return await self._answer(what, request)
            case "late-request":
                await sleep(self._clock, fault.seconds)
                return await self._answer(what, request)
            case "late-answer":
                response = await self._answer(what, request)
                await sleep(self._clock, fault.seconds)
                return response
            case "hung":
                await sleep(self._clock, HUNG_SECONDS)
                raise AnswerLost("injected: no answer")
            case "stale":
                return self._lists.get(request.path) or await self._answer(what, request)
            case code:
                return refusal(int(code))

    async def _answer(self, what: str, request: Request) -> Response:
        response = await self._transport.handle(request)
        if what == LIST and response.status == HTTPStatus.OK:
            self._lists.setdefault(request.path, response)
        if not isinstance(response.body, bytes):
            resource = resource_of(request.path)
            number = self._event_numbers.setdefault(resource, EventNumber())
            response.body = FaultyWatch(
                response.body, resource, self._events, number, self._clock, self._injected, self._is_calm
            )
        return response


def _close(response: Response) -> None:
    """Nobody reads this answer."""
    if not isinstance(response.body, bytes):
        response.body.close()


def refusal(code: int | RequestFaultKind) -> Response:
    """An answer that refuses a request."""
    status = status_of(int(code))
    headers = {"retry-after": "1"} if status["code"] == HTTPStatus.TOO_MANY_REQUESTS else {}
    return Response(status["code"], msgspec.json.encode(status), headers=headers)


def status_of(code: int) -> dict[str, Any]:
    """The Status of a refusal."""
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "code": code,
        "reason": _REASONS.get(code, _UNAVAILABLE),
        "message": f"injected {code}",
    }
