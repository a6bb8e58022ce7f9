"""Does to processes what a plan says."""

from __future__ import annotations

import asyncio
import resource
import signal
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from random import Random
from typing import Final

from moorage.client.kinds import NAMESPACE
from moorage_cluster.chaos.real_processes.audit_trail import AuditTrail
from moorage_cluster.chaos.real_processes.deployment import FAILURES, Deployment
from moorage_cluster.chaos.real_processes.large_objects import LargeObjects
from moorage_cluster.chaos.real_processes.process import SupervisedProcess
from moorage_cluster.chaos.real_processes.scenarios import LEASE_SECONDS, Fault, Whom

STEP_SECONDS: Final = 0.1
"""Interval at which is looked whether something has happened, in seconds."""
_TAKEOVER_SECONDS: Final = 30.0
"""Time limit of a takeover while the leader is stopped, in seconds beyond the plan's.

A takeover takes a busy machine longer than the lease. A standby that has just been started takes it from the
time when it has seen the lease first."""
_END_SECONDS: Final = 60.0
"""Time limit of the end of a leader that was stopped beyond its lease, in seconds."""
_BURST_SECONDS: Final = (0.01, 0.08)
"""How long a slow process runs at a time, in seconds."""
_REST_SECONDS: Final = (0.05, 0.4)
"""How long a slow process stands still at a time, in seconds."""
_CONNECT_SECONDS: Final = 2.0
_SECURE_SHARE: Final = 4
"""One of so many connections has TLS; the others send nothing at all."""


class Injector:
    """Injects the faults of a plan; failed: called with what must not happen."""

    def __init__(
        self, deployment: Deployment, trail: AuditTrail, random: Random, failed: Callable[[str], None]
    ) -> None:
        self._deployment = deployment
        self._trail = trail
        self._random = random
        self._failed = failed
        self.injected: Counter[str] = Counter()
        """What was done, and how often."""

    async def inject(self, fault: Fault) -> None:
        """Wait for the time of a fault, do it, and wait for its end."""
        await asyncio.sleep(fault.at)
        process = self._process(fault.whom)
        if not process.is_running:
            return
        self.injected[f"{fault.what} {fault.whom}"] += 1
        match fault.what:
            case "kill":
                await self._kill(process, fault.seconds)
            case "stop":
                await self._stop(process, fault.seconds)
            case "stutter":
                await self._stutter(process, fault.seconds)
            case "full-disk":
                await self._fill_disk(fault.seconds)
            case "connections":
                await self._connect(process, fault.amount, fault.seconds)
            case "memory":
                await self._limit_memory(process, fault.amount, fault.seconds)

    def _process(self, whom: Whom) -> SupervisedProcess:
        """The process that is meant now."""
        if whom == "server":
            return self._deployment.server
        self._trail.read()
        first, second = self._deployment.schedulers
        leader = self._deployment.users.get(self._trail.holder, first)
        return leader if whom == "leader" else second if leader is first else first

    @contextmanager
    def _pause(self, process: SupervisedProcess) -> Iterator[None]:
        """Note that the API server, if it is this process, does not answer."""
        if process is not self._deployment.server:
            yield
            return
        begin, pauses = time.time(), self._trail.pauses
        pauses.append((begin, float("inf")))
        try:
            yield
        finally:
            pauses.remove((begin, float("inf")))
            pauses.append((begin, time.time()))

    async def _kill(self, process: SupervisedProcess, seconds: float) -> None:
        with self._pause(process):
            process.kill(seconds)
            if process is self._deployment.server:
                await asyncio.sleep(seconds)
                await self._answers()

    async def _answers(self) -> None:
        """Wait until the API server answers."""
        while True:
            try:
                async with self._deployment.client("chaos-probe") as client:
                    await client.get(NAMESPACE, "", "default")
                return
            except FAILURES:
                await asyncio.sleep(STEP_SECONDS)

    async def _stop(self, process: SupervisedProcess, seconds: float) -> None:
        self._trail.read()
        is_leader = process is not self._deployment.server and self._holds_lease(process)
        starts = process.starts
        with self._pause(process):
            process.send(signal.SIGSTOP)
            try:
                await asyncio.sleep(seconds)
                if is_leader and seconds > LEASE_SECONDS:
                    await self._replaced(process)
            finally:
                process.send(signal.SIGCONT)
        if is_leader:
            await self._must_end_if_replaced(process, starts)

    def _holds_lease(self, scheduler: SupervisedProcess) -> bool:
        return self._deployment.user(scheduler) == self._trail.holder

    async def _replaced(self, leader: SupervisedProcess) -> None:
        """Wait until another process has taken the lease over, or it has had the time for it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_TAKEOVER_SECONDS):
                while self._holds_lease(leader):
                    await asyncio.sleep(STEP_SECONDS)
                    self._trail.read()

    async def _must_end_if_replaced(self, process: SupervisedProcess, starts: int) -> None:
        """A leader ends when another process has taken the lease over."""
        self._trail.read()
        if process.starts != starts or self._holds_lease(process):
            return
        try:
            async with asyncio.timeout(_END_SECONDS):
                while process.starts == starts:
                    await asyncio.sleep(STEP_SECONDS)
        except TimeoutError:
            self._failed(f"{process.name} did not end within {_END_SECONDS:g} s after its lease was taken")

    async def _stutter(self, process: SupervisedProcess, seconds: float) -> None:
        end = time.monotonic() + seconds
        with self._pause(process):
            while time.monotonic() < end:
                process.send(signal.SIGSTOP)
                try:
                    await asyncio.sleep(self._random.uniform(*_REST_SECONDS))
                finally:
                    process.send(signal.SIGCONT)
                await asyncio.sleep(self._random.uniform(*_BURST_SECONDS))

    async def _fill_disk(self, seconds: float) -> None:
        disk, server = self._deployment.disk, self._deployment.server
        large = LargeObjects(f"large-{self.injected['full-disk server']}")
        async with self._deployment.client("chaos-writer") as client:
            # A limit of file sizes holds for the audit log, too: then some of it is missing.
            with nullcontext() if disk.is_mounted else self._pause(server):
                disk.fill(server)
                try:
                    async with asyncio.timeout(seconds):
                        await large.write_until_refused(client)
                    self.injected["write refused"] += 1
                    await asyncio.sleep(seconds)
                except TimeoutError:
                    pass  # The server was killed, or has had room in its files.
                finally:
                    disk.empty(server)
            for name in await large.delete(client):
                self._failed(f"config map {name} is lost, whose creation was acknowledged")

    async def _connect(self, process: SupervisedProcess, count: int, seconds: float) -> None:
        deployment = self._deployment
        is_server = process is deployment.server
        port = deployment.port if is_server else deployment.ports[deployment.schedulers.index(process)]
        opening = [_open(port, is_secure=number % _SECURE_SHARE == 0) for number in range(count)]
        writers = [each for each in await asyncio.gather(*opening) if each is not None]
        try:
            await asyncio.sleep(seconds)
        finally:
            for writer in writers:
                writer.transport.abort()

    async def _limit_memory(self, process: SupervisedProcess, extra_bytes: int, seconds: float) -> None:
        self._deployment.is_short_of_memory = True
        with self._pause(process):
            process.limit(resource.RLIMIT_AS, process.address_space() + extra_bytes)
            try:
                await asyncio.sleep(seconds)
            finally:
                process.limit(resource.RLIMIT_AS, resource.RLIM_INFINITY)


async def _open(port: int, *, is_secure: bool) -> asyncio.StreamWriter | None:
    """A connection; None if it could not be made."""
    context = None
    if is_secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    except (OSError, TimeoutError):
        return None
    return writer
