"""Leader election by a Lease, as in client-go: of several schedulers, only the holder schedules.

The holder renews the lease every `retryPeriod`. The others read it about as often, and acquire it when it has
not changed for its duration (`leaseDurationSeconds`), measured by their own clocks: clocks need not agree on
the time, only on the length of a second. A write carries the resourceVersion that was read, so of several
candidates that acquire the lease at once one succeeds.

There are never two leaders. A candidate leads only until `leaseDurationSeconds` after it *sent* the last
request that renewed the lease; another candidate has seen that renewal later, and waits for the same time.
This is stricter than client-go, which counts from the response and continues for `renewDeadline` even when it
has seen another holder. `is_leading` reads the clock each time, so a process that was suspended does not lead
when it resumes.

Renewals must not depend on the scheduler's event loop, where one cycle may take seconds: `election_thread`
runs this in a thread with its own loop and connection.
"""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any, Final, TypeVar

import msgspec

from moorage.api.manifests import micro_timestamp
from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.client.client import Client
from moorage.client.waiting import within
from moorage.clock import Clock
from moorage.config import types as config_types
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.klog import Logger
from moorage.services.leases import LeaseEvents, LeaseLock, Record
from moorage.services.metrics import Metrics

log = Logger(__name__)

T = TypeVar("T")

JITTER_FACTOR: Final = 1.2
"""Maximum jitter of the retry period, as a factor of it."""
WATCHDOG_SECONDS: Final = 20.0
"""Time after the lease's expiry at which a leader that has not ended is unhealthy, in seconds."""
NAME: Final = "kube-scheduler"
"""The election's name in metrics and checks, independent of the lease's name."""

_TELLING_SECONDS: Final = 2.0
_FAILURES: Final = (RequestError, ConnectionFailed, TimeoutError, msgspec.MsgspecError)


class LostLease(Exception):  # noqa: N818 -- it says what happened
    """The lease was not renewed in time, or has another holder: scheduling must stop."""


class ElectionConfigError(ValueError):
    """Durations with which no election can work."""


def new_identity() -> str:
    """An identity for this candidate, unique across candidates and restarts."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaderElector:
    """One candidate in one election."""

    def __init__(
        self,
        client: Client,
        config: config_types.LeaderElection,
        clock: Clock,
        random: Random,
        identity: str,
        *,
        component: str = DEFAULT_SCHEDULER,
        metrics: Metrics | None = None,
    ) -> None:
        _check_durations(config)
        self._config = config
        self._clock = clock
        self._random = random
        self.identity = identity
        self._name = f"{config.resource_namespace}/{config.resource_name}"
        self._lease_seconds = int(config.lease_duration)
        self._request_seconds = max(config.renew_deadline / 2, 1.0)
        self._lock = LeaseLock(client, config.resource_namespace, config.resource_name)
        self._events = LeaseEvents(client, clock, component)
        self._metrics = metrics
        self._seen: Record | None = None
        self._seen_at = 0.0
        self._has_started = False
        self._leads_until = float("-inf")
        self._stopping = asyncio.Event()
        self._show_status()

    # -- state

    @property
    def is_leading(self) -> bool:
        """Whether this candidate is the leader now."""
        return self._has_started and self._clock.now() < self._leads_until

    @property
    def is_former_leader(self) -> bool:
        """Whether this candidate has held the lease, and its time is over: it must not write any more."""
        return float("-inf") < self._leads_until <= self._clock.now()

    @property
    def leader(self) -> str:
        """The last known leader; empty: none."""
        return self._seen.holder if self._seen is not None else ""

    def check(self, tolerated_seconds: float = WATCHDOG_SECONDS) -> str | None:
        """The problem, for a health check: a leader that should have renewed or ended long ago."""
        if not self._holds or self._clock.now() - self._seen_at <= self._lease_seconds + tolerated_seconds:
            return None
        return f"failed election to renew leadership on lease {NAME}"

    def stop(self) -> None:
        """Release the lease and end; the caller has completed its work as leader."""
        self._stopping.set()

    # -- the election

    async def run(self, on_started: Callable[[], None], on_stopped: Callable[[], None]) -> None:
        """Acquire the lease, and lead until `stop`; LostLease if the lease is lost before that.

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
        """Returns when this candidate leads; False if it is stopped before."""
        log.info(0, "Attempting to acquire leader lease...", lock=self._name)
        while not self._stopping.is_set():
            if await self._attempt():
                log.info(0, "Successfully acquired lease", lock=self._name)
                self._has_started = True
                self._show_status()
                self._events.record(self._lock.lease, f"{self.identity} became leader")
                return True
            log.info(4, "Failed to acquire lease", lock=self._name)
            await self._pause(self._config.retry_period * (1 + JITTER_FACTOR * self._random.random()))
        return False

    async def _renew(self) -> None:
        """Renew until stopped."""
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
        holder = self.leader or "no candidate"
        reason = "it could not be renewed in time" if self._holds else f"it is held by {holder}"
        log.info(0, "Failed to renew lease", lock=self._name, err=reason)
        raise LostLease(f"the leader lease {self._config.resource_name} is lost: {reason}")

    async def _release(self) -> None:
        """Release the lease, if this candidate still holds it."""
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
        moment = micro_timestamp(self._clock.utc_now())
        released = Record("", 1, moment, moment, current.transitions)
        await self._lock.update(released)
        self._see(released)
        self._events.record(self._lock.lease, f"{self.identity} stopped leading")

    # -- one attempt

    async def _attempt(self) -> bool:
        """Try to acquire or renew the lease; returns whether this candidate holds it."""
        if self._holds and self._is_valid():
            try:
                # Only the holder writes a lease that is held: it is not read first.
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
        """Write this candidate into the lease, over the current record (None: there is none)."""
        moment = micro_timestamp(self._clock.utc_now())
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

    # -- helpers

    @property
    def _holds(self) -> bool:
        return self._seen is not None and self._seen.holder == self.identity

    def _is_valid(self) -> bool:
        """Whether the record was last seen to change less than its duration ago."""
        return self._seen is not None and self._clock.now() < self._seen_at + self._seen.duration_seconds

    def _see(self, record: Record) -> None:
        if record.holder != self.leader:
            log.info(0, "New leader elected", lock=self._name, holder=record.holder)
        self._seen, self._seen_at = record, self._clock.now()

    async def _bounded(self, request: Coroutine[Any, Any, T]) -> T:
        return await within(self._clock, self._request_seconds, request)

    async def _pause(self, seconds: float) -> bool:
        """Wait, or return immediately when stopped; returns whether it was stopped."""
        if not self._stopping.is_set():
            with suppress(TimeoutError):
                await within(self._clock, seconds, self._stopping.wait())
        return self._stopping.is_set()

    def _show_status(self) -> None:
        if self._metrics is not None:
            self._metrics.leader_status.labels(NAME).set(float(self._has_started))


def _check_durations(config: config_types.LeaderElection) -> None:
    """Reject invalid durations, with client-go's messages."""
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
