"""Who of several schedulers schedules: the one that holds a Lease, as client-go's leader election has it.

The holder writes the lease every `retryPeriod`. The others read it about as often, and take it when it has
stayed as it is for as long as it says (`leaseDurationSeconds`), by their own clocks: clocks need not agree on
what time it is, only on how long a second is. A write names the version that was read, so of several that
take the lease at once one gets it.

Two never lead at once. A candidate leads only until `leaseDurationSeconds` after it *sent* the last request
that renewed the lease; whoever takes over has seen that renewal later than that, and waits for as long. This
is stricter than client-go, which counts from the answer and goes on for `renewDeadline` even when it has seen
another holder. `is_leading` looks at the clock each time, so a process that was suspended in between does not
lead when it wakes up, whatever it believed before.

Renewing must not depend on the scheduler's event loop, where one cycle may take seconds: `election_thread`
runs this in a thread with a loop and a connection of its own.
"""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import datetime
from random import Random
from typing import Any, Final, TypeVar

import msgspec

from moorage.api.manifests import micro_timestamp
from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.client.client import Client
from moorage.clock import Clock
from moorage.config import types as config_types
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.klog import Logger
from moorage.services.leases import LeaseEvents, LeaseLock, Record
from moorage.services.metrics import Metrics
from moorage.services.timing import within

log = Logger(__name__)

T = TypeVar("T")

JITTER_FACTOR: Final = 1.2
"""Pauses between attempts to get the lease are made longer by up to so much of themselves."""
WATCHDOG_SECONDS: Final = 20.0
"""A leader that has not renewed for so much longer than its lease lasts should have ended: it is ill."""
NAME: Final = "kube-scheduler"
"""What metrics and checks call the election, whatever the lease is named."""

_TELLING_SECONDS: Final = 2.0
_FAILURES: Final = (RequestError, ConnectionFailed, TimeoutError, msgspec.MsgspecError)


class LostLease(Exception):  # noqa: N818 -- it says what happened
    """The lease could not be renewed in time, or somebody else has it: whoever scheduled must not go on."""


class ElectionConfigError(ValueError):
    """Durations with which no election can work."""


def new_identity() -> str:
    """A name for this candidate that no other has, nor this one after a restart."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaderElection:
    """One candidate in one election."""

    def __init__(
        self,
        client: Client,
        config: config_types.LeaderElection,
        clock: Clock,
        now: Callable[[], datetime],
        random: Random,
        identity: str,
        *,
        component: str = DEFAULT_SCHEDULER,
        metrics: Metrics | None = None,
    ) -> None:
        _check_durations(config)
        self._config = config
        self._clock = clock
        self._now = now
        self._random = random
        self.identity = identity
        self._name = f"{config.resource_namespace}/{config.resource_name}"
        self._lease_seconds = int(config.lease_duration)
        self._request_seconds = max(config.renew_deadline / 2, 1.0)
        self._lock = LeaseLock(client, config.resource_namespace, config.resource_name)
        self._events = LeaseEvents(client, now, component)
        self._metrics = metrics
        self._seen: Record | None = None
        self._seen_at = 0.0
        self._has_started = False
        self._leads_until = float("-inf")
        self._stopping = asyncio.Event()
        self._show_status()

    # -- what others may ask

    @property
    def is_leading(self) -> bool:
        """Whether this candidate leads at this moment."""
        return self._has_started and self._clock.now() < self._leads_until

    @property
    def leader(self) -> str:
        """Who leads, as far as is known; empty: nobody."""
        return self._seen.holder if self._seen is not None else ""

    def check(self, tolerated_seconds: float = WATCHDOG_SECONDS) -> str | None:
        """What is wrong, for a health check: a leader that long ago should have renewed or ended."""
        if not self._holds or self._clock.now() - self._seen_at <= self._lease_seconds + tolerated_seconds:
            return None
        return f"failed election to renew leadership on lease {NAME}"

    def stop(self) -> None:
        """Give the lease back and end; first finish whatever only a leader may do."""
        self._stopping.set()

    # -- the election

    async def run(self, on_started: Callable[[], None], on_stopped: Callable[[], None]) -> None:
        """Become leader, lead until told to stop; LostLease if the lease is lost before that.

        `on_started` is called once this candidate leads, `on_stopped` at the end, also if it never did.
        """
        try:
            if not await self._acquire():
                return
            on_started()
            await self._renew()
            await self._release()
        finally:
            self._has_started = False
            self._show_status()
            on_stopped()
            self._events.close()

    async def _acquire(self) -> bool:
        """Returns once this candidate leads; False if it is told to stop before."""
        log.info(0, "Attempting to acquire leader lease...", lock=self._name)
        while not self._stopping.is_set():
            if await self._attempt():
                log.info(0, "Successfully acquired lease", lock=self._name)
                self._has_started = True
                self._show_status()
                self._events.tell(self._lock.lease, f"{self.identity} became leader")
                return True
            log.info(4, "Failed to acquire lease", lock=self._name)
            await self._pause(self._config.retry_period * (1 + JITTER_FACTOR * self._random.random()))
        return False

    async def _renew(self) -> None:
        """Renew until told to stop."""
        while not await self._pause(self._config.retry_period):
            deadline = min(self._clock.now() + self._config.renew_deadline, self._leads_until)
            while not await self._renewed_before(deadline):
                if await self._pause(min(self._config.retry_period, deadline - self._clock.now())):
                    return

    async def _renewed_before(self, deadline: float) -> bool:
        """Whether an attempt to renew succeeds; LostLease if there is no time for another."""
        remaining = deadline - self._clock.now()
        if remaining > 0:
            try:
                if await within(self._clock, remaining, self._attempt()):
                    log.info(5, "Successfully renewed lease", lock=self._name)
                    return True
            except TimeoutError:
                pass
            if self._clock.now() < deadline and self._holds:
                return False
        reason = "it could not be renewed in time" if self._holds else f"{self.leader or 'nobody'} has it"
        log.info(0, "Failed to renew lease", lock=self._name, err=reason)
        raise LostLease(f"the leader lease {self._config.resource_name} is lost: {reason}")

    async def _release(self) -> None:
        """Let others have the lease at once, if it is still this candidate's."""
        self._has_started = False
        try:
            await within(self._clock, self._config.renew_deadline, self._give_back())
            await within(self._clock, _TELLING_SECONDS, self._events.written())
        except _FAILURES as error:
            log.error(error, "Failed to release lease", lock=self._name)

    async def _give_back(self) -> None:
        current = await self._lock.read()
        if current is None or current.holder != self.identity:
            return
        moment = micro_timestamp(self._now())
        released = Record("", 1, moment, moment, current.transitions)
        await self._lock.update(released)
        self._see(released)
        self._events.tell(self._lock.lease, f"{self.identity} stopped leading")

    # -- one attempt

    async def _attempt(self) -> bool:
        """Try to get or to keep the lease; whether this candidate has it now."""
        if self._holds and self._is_valid():
            try:
                # Usually nobody else writes a lease that is held: no need to read it first.
                await self._write(self._seen)
                return True
            except _FAILURES as error:
                message = "Failed to update lease optimistically, falling back to slow path"
                log.info(2, message, lock=self._name, err=error)
        try:
            current = await self._bounded(self._lock.read())
            if current is not None and current != self._seen:
                self._see(current)
            if current is not None and current.holder and not self._holds and self._is_valid():
                message = "Lease is held by and has not yet expired"
                log.info(4, message, lock=self._name, holder=current.holder)
                return False
            if self._holds and self._metrics is not None:
                self._metrics.leader_slow_path.labels(NAME).inc()
            await self._write(current)
        except _FAILURES as error:
            log.error(error, "Failed to update lease", lock=self._name)
            return False
        return True

    async def _write(self, current: Record | None) -> None:
        """Write this candidate into the lease, over what it says now (None: there is none)."""
        moment = micro_timestamp(self._now())
        if current is None:
            record = Record(self.identity, self._lease_seconds, moment, moment, 0)
        elif current.holder == self.identity:
            acquired, transitions = current.acquire_time, current.transitions
            record = Record(self.identity, self._lease_seconds, acquired, moment, transitions)
        else:
            record = Record(self.identity, self._lease_seconds, moment, moment, current.transitions + 1)
        sent_at = self._clock.now()
        await self._bounded(self._lock.create(record) if current is None else self._lock.update(record))
        self._leads_until = sent_at + self._lease_seconds
        self._see(record)

    # -- small things

    @property
    def _holds(self) -> bool:
        return self._seen is not None and self._seen.holder == self.identity

    def _is_valid(self) -> bool:
        """Whether the record has been seen to change less than its duration ago."""
        return self._seen is not None and self._clock.now() < self._seen_at + self._seen.duration_seconds

    def _see(self, record: Record) -> None:
        if record.holder != self.leader:
            log.info(0, "New leader elected", lock=self._name, holder=record.holder)
        self._seen, self._seen_at = record, self._clock.now()

    async def _bounded(self, request: Coroutine[Any, Any, T]) -> T:
        return await within(self._clock, self._request_seconds, request)

    async def _pause(self, seconds: float) -> bool:
        """Wait, or return at once when told to stop; whether that is so."""
        if not self._stopping.is_set():
            with suppress(TimeoutError):
                await within(self._clock, seconds, self._stopping.wait())
        return self._stopping.is_set()

    def _show_status(self) -> None:
        if self._metrics is not None:
            self._metrics.leader_status.labels(NAME).set(float(self._has_started))


def _check_durations(config: config_types.LeaderElection) -> None:
    """Refuse durations that make no sense, with client-go's words."""
    if config.lease_duration <= config.renew_deadline:
        raise ElectionConfigError("leaseDuration must be greater than renewDeadline")
    if config.renew_deadline <= JITTER_FACTOR * config.retry_period:
        raise ElectionConfigError("renewDeadline must be greater than retryPeriod*JitterFactor")
    for name, seconds in (
        ("leaseDuration", config.lease_duration),
        ("renewDeadline", config.renew_deadline),
        ("retryPeriod", config.retry_period),
    ):
        if seconds <= 0:
            raise ElectionConfigError(f"{name} must be greater than zero")
    if config.lease_duration < 1:
        raise ElectionConfigError("leaseDuration must be at least one second: a lease counts whole seconds")
