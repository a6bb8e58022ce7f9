"""A client of a remote server: connections, credentials, rate limit and retries combined."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

from moorage.client.authenticated import AuthenticatedTransport
from moorage.client.client import Client
from moorage.client.credentials import Access
from moorage.client.rate_limit import RateLimitedTransport
from moorage.client.request_observer import RequestObserver
from moorage.client.retry import RetryingTransport
from moorage.clock import Clock, LoopClock
from moorage.http.client_transport import HttpTransport


@asynccontextmanager
async def connected(
    access: Access,
    *,
    qps: float = 0.0,
    burst: int = 0,
    user_agent: str = "moorage",
    clock: Clock | None = None,
    random: Random | None = None,
    connect_seconds: float = 10.0,
    idle_seconds: float = 60.0,
    pipelining: bool = False,
    gather_seconds: float = 0.0,
    observer: RequestObserver | None = None,
    retries: bool = True,
    before_writing: Callable[[], None] | None = None,
) -> AsyncIterator[Client]:
    """A client for the duration of the context; `qps` of 0 or less: no rate limit.

    Each retry counts against the rate limit like any request. With `pipelining`, writes share connections,
    and wait up to `gather_seconds` for others while there are many. `before_writing` is called
    immediately before requests with a body leave.
    """
    clock = clock or LoopClock()
    async with HttpTransport(
        access.endpoint,
        connect_seconds=connect_seconds,
        idle_seconds=idle_seconds,
        pipelining=pipelining,
        gather_seconds=gather_seconds,
        before_writing=before_writing,
    ) as transport:
        authenticated = AuthenticatedTransport(transport, access.credentials, access.impersonated)
        limited = RateLimitedTransport(authenticated, clock, qps, burst, observer)
        retrying = RetryingTransport(limited, clock, random or Random(), observer) if retries else limited
        yield Client(retrying, user_agent=user_agent)
