"""A container as a process: start, output, probes, termination, and the reports of these."""

from __future__ import annotations

import asyncio
import math
import os
import signal
from asyncio.subprocess import Process
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from moorage.api.manifests import Manifest
from moorage.clock import Clock, Timer
from moorage_cluster.nodes.workload import Ended, Probed, RecordEvent, Report, StartDelayed, Started
from moorage_cluster.processes.command import Command, CommandError, Launched, kill_group
from moorage_cluster.processes.container_log import ContainerLog
from moorage_cluster.processes.probes import Prober
from moorage_cluster.processes.probing import Probing
from moorage_cluster.processes.sweeping import Sweeper
from moorage_cluster.processes.tasks import Tasks

_CONFIG_ERROR: Final = "CreateContainerConfigError"
_START_ERROR: Final = "StartError"
_START_ERROR_CODE: Final = 128
_RETRY_SECONDS: Final = 3.0
"""Pause before the creation of a container is retried, in seconds."""
_MESSAGE_LINES: Final = 80
_MESSAGE_BYTES: Final = 2048


@dataclass(frozen=True, slots=True)
class ContainerContext:
    """Shared state of the processes of one pod."""

    clock: Clock
    tasks: Tasks
    sweeper: Sweeper
    address: str
    """The address of its ports."""
    grace_seconds: float
    wake: Callable[[], None]
    record_event: RecordEvent


class ContainerProcess:
    """One start of a container, from the first attempt to create it to its end."""

    def __init__(
        self,
        context: ContainerContext,
        container: Manifest,
        make_command: Callable[[], Awaitable[Command]],
        open_log: Callable[[], ContainerLog],
    ) -> None:
        self.reports: deque[Report] = deque()
        self._context = context
        self._container = container
        self._make_command = make_command
        self._open_log = open_log
        self._process: Process | None = None
        self._is_ending = asyncio.Event()
        self._kill_timer: Timer | None = None
        self._kill_at = math.inf
        self._is_discarded = False
        self.task = context.tasks.start(self._run())

    # -- ending

    def stop(self, grace_seconds: float) -> None:
        """Terminate it, and kill it after the grace period; a shorter one may follow."""
        is_first = not self._is_ending.is_set()
        self._is_ending.set()
        if self._process is None or self._process.returncode is not None:
            return
        pid, kill_at = self._process.pid, self._now + grace_seconds
        if is_first and grace_seconds > 0:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        if kill_at < self._kill_at:
            if self._kill_timer is not None:
                self._kill_timer.cancel()
            self._kill_at = kill_at
            self._kill_timer = self._context.clock.call_later(grace_seconds, lambda: kill_group(pid))

    def discard(self, grace_seconds: float) -> None:
        """End it without any further report."""
        self._is_discarded = True
        self.stop(grace_seconds)

    # -- running

    async def _run(self) -> None:
        command = await self._created()
        if command is None:
            return
        log = self._open_log()
        try:
            launched = await command.launch()
        except (OSError, ValueError) as error:
            log.close()
            self._report(Ended(self._now, _START_ERROR_CODE, _START_ERROR, _start_message(error)))
            return
        self._process = launched.process
        self._context.sweeper.add(self._process.pid)
        try:
            await self._attend(launched, command, log)
        finally:
            self._context.sweeper.remove(self._process.pid)

    async def _created(self) -> Command | None:
        """The command, once there is one; None if the container is stopped before."""
        while not self._is_ending.is_set():
            try:
                return await self._make_command()
            except CommandError as error:
                self._report(StartDelayed(self._now, _CONFIG_ERROR, str(error)))
                self._context.record_event("Warning", "Failed", f"Error: {error}")
            with suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_SECONDS):
                    await self._is_ending.wait()
        return None

    async def _attend(self, launched: Launched, command: Command, log: ContainerLog) -> None:
        """Supervise a process until its end; as in a container, nothing outlives its first process."""
        if self._is_ending.is_set():
            kill_group(launched.process.pid)
        self._report(Started(self._now, is_started=not self._container.get("startupProbe")))
        reading = asyncio.ensure_future(launched.read(log.write))
        probing = self._context.tasks.start(self._prober(command).run())
        try:
            code = await launched.process.wait()
        finally:
            probing.cancel()
            if self._kill_timer is not None:
                self._kill_timer.cancel()
            await launched.finish(reading)
            await asyncio.gather(probing, return_exceptions=True)
            log.close()
        self._report(self._ended(code, log))

    def _ended(self, code: int, log: ContainerLog) -> Ended:
        exit_code = 128 - code if code < 0 else code
        message = ""
        if exit_code and self._container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            message = log.tail(_MESSAGE_LINES, _MESSAGE_BYTES)
        return Ended(self._now, exit_code, "Error" if exit_code else "Completed", message)

    # -- probes

    def _prober(self, command: Command) -> Prober:
        async def run_command(words: Sequence[str]) -> tuple[int, bytes]:
            return await command.with_words(words).run()

        return Prober(
            self._container,
            self._context.clock,
            Probing(self._container, self._context.address, run_command).check,
            lambda is_started, is_ready: self._report(Probed(self._now, is_started, is_ready)),
            self._probe_failed,
            lambda problem: self._context.record_event("Warning", "Unhealthy", problem),
        )

    def _probe_failed(self, kind: str, probe: Manifest) -> None:
        if self._is_ending.is_set():
            return
        name = self._container["name"]
        self._context.record_event(
            "Normal", "Killing", f"Container {name} failed {kind} probe, will be restarted"
        )
        self.stop(probe.get("terminationGracePeriodSeconds") or self._context.grace_seconds)

    # -- reporting

    @property
    def _now(self) -> float:
        return self._context.clock.now()

    def _report(self, report: Report) -> None:
        if not self._is_discarded:
            self.reports.append(report)
            self._context.wake()


def _start_message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f'exec: "{error.filename}": {(error.strerror or "").lower()}'
    return str(error)
