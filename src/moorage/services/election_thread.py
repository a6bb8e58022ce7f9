"""Leader election in a thread, with its own event loop and connection.

A scheduling cycle is synchronous code that may take seconds (many nodes, a search for devices); its loop
cannot guarantee to renew a lease every two seconds. A thread can: the interpreter switches threads every few
milliseconds, and a renewal is one small request. Another process could as well, but would have to be watched;
the thread of a process that is suspended or killed stops with it, so no lease is renewed for a scheduler that
is gone. For one whose loop is stuck it is renewed until the loop's watchdog ends the process.

The election calls back in the scheduler's loop. A lost lease is also reported immediately, in the thread
(`on_lost`): the scheduler's loop may be busy, and must not complete its current work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from moorage.client.client import Client
from moorage.clock import Clock
from moorage.services.leader_election import LeaderElector, LostLease
from moorage.services.loop_thread import run_in_thread
from moorage.services.timing import MonotonicClock

Connect = Callable[[], AbstractAsyncContextManager[Client]]
"""Creates a client in the running loop, and closes its connections at the end."""
Make = Callable[[Client, Clock], LeaderElector]


def _do_nothing() -> None:
    """The default of `on_lost`."""


class ElectionThread:
    """A candidate whose renewals do not depend on the scheduler's loop."""

    def __init__(self, connect: Connect, make: Make, on_lost: Callable[[], None] = _do_nothing) -> None:
        self._connect = connect
        self._make = make
        self._on_lost = on_lost
        self._guard = threading.Lock()
        self._is_stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._election: LeaderElector | None = None

    @property
    def is_leading(self) -> bool:
        """Whether this process is the leader now."""
        return self._election is not None and self._election.is_leading

    @property
    def is_former_leader(self) -> bool:
        """Whether this process was the leader, and its lease has ended."""
        return self._election is not None and self._election.is_former_leader

    def check(self) -> str | None:
        """The problem, for a health check; None before there is an election."""
        return self._election.check() if self._election is not None else None

    def stop(self) -> None:
        """Release the lease and end; the caller has completed its work as leader."""
        with self._guard:
            self._is_stopping = True
            if self._loop is not None and self._election is not None:
                self._loop.call_soon_threadsafe(self._election.stop)

    async def run(self, on_started: Callable[[], None], on_stopped: Callable[[], None]) -> None:
        """Take part in the election until `stop`; LostLease if the lease is lost before that.

        The callbacks are called in the loop that runs this.
        """
        loop = asyncio.get_running_loop()

        def started() -> None:
            loop.call_soon_threadsafe(on_started)

        def stopped() -> None:
            loop.call_soon_threadsafe(on_stopped)

        ended = run_in_thread("leader-election", lambda: self._elect(started, stopped))
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            self.stop()
            await asyncio.wait((ended,))
            raise

    async def _elect(self, on_started: Callable[[], None], on_stopped: Callable[[], None]) -> None:
        async with self._connect() as client:
            election = self._make(client, MonotonicClock())
            with self._guard:
                self._loop, self._election = asyncio.get_running_loop(), election
                if self._is_stopping:
                    election.stop()
            try:
                await election.run(on_started, on_stopped)
            except LostLease:
                self._on_lost()
                raise
            finally:
                with self._guard:
                    self._loop = None
