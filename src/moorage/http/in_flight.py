"""How many requests of all connections a server answers at a time; what is beyond that is refused with 429.

Requests that are received in one turn of the event loop are in flight together: they arrived while the turn
before was at work. They wait for each other, so their number bounds how long an answer takes under load. A
request is refused before anything but its method and its target is read. A connection counts once, however
many requests it has sent: their answers are sent in order, one after the other.

The cluster's own components have shares of their own, as large as those of all others: when clients flood the
server, pods are still bound, and leases renewed. kube-apiserver does this with priority levels.

A refusal costs the server a good part of what a small request does. So nothing more is read from the
connection until `Retry-After` has passed: clients that do not wait by themselves wait, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import msgspec

from moorage.http.api_error import ApiError
from moorage.http.limits import MAX_READS, MAX_WRITES
from moorage.http.transport import Request, Response

RETRY_AFTER_SECONDS: Final = 1
_READING: Final = frozenset({"GET", "HEAD"})


class InFlightLimits:
    """The limits of one server; 0: none.

    is_own: whether a request is one of the cluster's own components; asked about what exceeds a limit.
    """

    def __init__(
        self,
        reads: int = MAX_READS,
        writes: int = MAX_WRITES,
        is_own: Callable[[Request], bool] = lambda request: False,
    ) -> None:
        self.is_own = is_own
        self._reads, self._writes = _Class(reads), _Class(writes)
        self._has_counted = False
        self.refused = 0
        """Number of requests that were refused since the start."""

    def refusal(self, request: Request) -> Response | None:
        """The answer to a request that exceeds a limit; None: it counts from now on.

        Watches are exempt: there is no more to do for one than to note it.
        """
        kind = self._reads if request.method in _READING else self._writes
        if not kind.most or (kind is self._reads and _is_watch(request)):
            return None
        if kind.count < kind.most:
            kind.count += 1
        elif kind.own_count < kind.most and self.is_own(request):
            kind.own_count += 1
        else:
            self.refused += 1
            return Response(_ERROR.code, _BODY, headers=dict(_ERROR.headers))
        if not self._has_counted:
            self._has_counted = True
            asyncio.get_running_loop().call_soon(self._begin_turn)
        return None

    def _begin_turn(self) -> None:
        self._has_counted = False
        for kind in (self._reads, self._writes):
            kind.count = kind.own_count = 0


class _Class:
    """Requests with a limit of their own."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0
        self.own_count = 0
        """Number of requests of the cluster's own components beyond the limit."""


def _is_watch(request: Request) -> bool:
    return "watch=" in request.query and "watch=0" not in request.query and "watch=false" not in request.query


_ERROR: Final = ApiError(
    HTTPStatus.TOO_MANY_REQUESTS,
    "TooManyRequests",
    "too many requests are in flight, please try again later",
    {"retryAfterSeconds": RETRY_AFTER_SECONDS},
    {"Retry-After": str(RETRY_AFTER_SECONDS)},
)
_BODY: Final = msgspec.json.encode(_ERROR.status)
