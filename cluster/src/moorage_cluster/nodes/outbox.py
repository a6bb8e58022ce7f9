"""A queue of writes: at most one of a key at a time, and only the newest counts.

State machines change without waiting and enqueue their writes. A write is a function that reads the state
when it is sent, so several changes meanwhile are one write. Transient failures are retried.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from moorage.backoff import backoff_seconds
from moorage.clock import Clock
from moorage.http.errors import ConnectionFailed, RequestError

Write = Callable[[], Awaitable[None]]

_INITIAL_BACKOFF_SECONDS: Final = 0.5
_MAX_BACKOFF_SECONDS: Final = 30.0

log = logging.getLogger(__name__)


class Outbox:
    """Sends writes with a few workers."""

    def __init__(self, clock: Clock, workers: int = 4) -> None:
        self._clock = clock
        self._workers = workers
        self._waiting: dict[Hashable, Write] = {}
        self._sending: dict[Hashable, Write | None] = {}
        self._failures: dict[Hashable, int] = {}
        self._woken = asyncio.Event()

    def put(self, key: Hashable, write: Write) -> None:
        """Enqueue a write; it replaces a waiting one with this key, and follows one that is being sent."""
        if key in self._sending:
            self._sending[key] = write
        else:
            self._waiting[key] = write
            self._woken.set()

    def holds(self, key: Hashable) -> bool:
        """Whether a write with this key waits or is being sent."""
        return key in self._waiting or key in self._sending

    @property
    def is_idle(self) -> bool:
        """Whether everything has been sent."""
        return not self._waiting and not self._sending

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._workers):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        while True:
            while self._waiting:
                key = next(iter(self._waiting))
                write = self._waiting.pop(key)
                self._sending[key] = None
                await self._send(key, write)
                again = self._sending.pop(key)
                if again is not None:
                    self.put(key, again)
                # A server in the same process responds without waiting; other tasks still need their turn.
                await asyncio.sleep(0)
            self._woken.clear()
            await self._woken.wait()

    async def _send(self, key: Hashable, write: Write) -> None:
        try:
            await write()
        except RequestError as error:
            if error.code < 500 and error.code != 429:
                if not (error.is_not_found or error.is_conflict):
                    log.warning("%s: %s", key, error)
                self._failures.pop(key, None)
                return
            self._retry(key, write, error)
        except ConnectionFailed as error:
            self._retry(key, write, error)
        except Exception:
            log.exception("%s", key)
        else:
            self._failures.pop(key, None)

    def _retry(self, key: Hashable, write: Write, error: Exception) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = backoff_seconds(failures, _INITIAL_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS)
        log.warning("%s: %s; trying again in %.1f s", key, error, pause)

        def again() -> None:
            if not self.holds(key):
                self.put(key, write)

        self._clock.call_later(pause, again)
