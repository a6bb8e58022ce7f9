"""Work that a write causes but need not wait for: deleting dependents, emptying a namespace."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from moorage.apimachinery.errors import ApiError
from moorage.clock import Clock

_BATCH = 20
"""Number of jobs that are run before requests are handled again."""
_RETRY_SECONDS = 10.0
"""How long after a failure of the server a job is run again, in seconds."""

Job = Callable[[], None]

log = logging.getLogger(__name__)


class DeferredJobs:
    """Jobs that are run on the event loop, one after another, between requests.

    A job that the server fails to do, because the disk is full, is done again later.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._jobs: deque[Job] = deque()
        self._is_scheduled = False

    def soon(self, job: Job) -> None:
        """Run a job after the current callback; without a running loop, it waits for `start`."""
        self._jobs.append(job)
        self.start()

    def start(self) -> None:
        """Start running the queued jobs."""
        if self._is_scheduled or not self._jobs:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._is_scheduled = True
        loop.call_soon(self._run)

    def _run(self) -> None:
        self._is_scheduled = False
        for _ in range(min(_BATCH, len(self._jobs))):
            job = self._jobs.popleft()
            try:
                job()
            except ApiError as error:
                log.warning("cleaning up: %s", error)
                if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    self._clock.call_later(_RETRY_SECONDS, partial(self.soon, job))
            except Exception:
                log.exception("cleaning up failed")
        self.start()
