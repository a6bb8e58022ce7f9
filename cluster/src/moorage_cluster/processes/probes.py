"""Startup, liveness and readiness probes: their timing, and the effects of their results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from moorage.api.manifests import Manifest
from moorage.client.waiting import sleep
from moorage.clock import Clock

_UNREADY_PERIOD_SECONDS: Final = 0.5
"""Longest pause between readiness probes until one passes, in seconds: kubelets make extra ones then."""

Check = Callable[[Manifest], Awaitable[str]]
"""Makes a probe; returns the failure, or empty."""


@dataclass(slots=True)
class ProbeResult:
    """The results of one probe: the outcome changes after a threshold of equal results in a row."""

    success_threshold: int
    failure_threshold: int
    has_passed: bool
    _run_length: int = 0
    _last: bool | None = None

    @classmethod
    def of(cls, probe: Manifest, *, passes_at_first: bool) -> ProbeResult:
        """The result before the first probe."""
        return cls(probe.get("successThreshold") or 1, probe.get("failureThreshold") or 3, passes_at_first)

    def add(self, passed: bool) -> bool:
        """Record a result; returns whether the threshold of successes, or failures, in a row is reached."""
        self._run_length = self._run_length + 1 if passed == self._last else 1
        self._last = passed
        is_enough = self._run_length >= (self.success_threshold if passed else self.failure_threshold)
        if is_enough:
            self.has_passed = passed
        return is_enough


class Prober:
    """Makes the probes of one container from its start on.

    changed: called with whether it has started up and whether it is ready. failed: called with the kind of
    a probe (`liveness`, `startup`) after which the container is killed. tell: records the event of a
    failed probe.
    """

    def __init__(
        self,
        container: Manifest,
        clock: Clock,
        check: Check,
        changed: Callable[[bool, bool], None],
        failed: Callable[[str, Manifest], None],
        record_event: Callable[[str], None],
    ) -> None:
        self._container = container
        self._clock = clock
        self._check = check
        self._changed = changed
        self._failed = failed
        self._record_event = record_event

    async def run(self) -> None:
        """Probe until cancelled, or until there is nothing left to probe."""
        if not await self._has_started_up():
            return
        readiness, liveness = self._container.get("readinessProbe"), self._container.get("livenessProbe")
        self._changed(True, not readiness)
        async with asyncio.TaskGroup() as tasks:
            if readiness:
                tasks.create_task(self._watch_readiness(readiness))
            if liveness:
                tasks.create_task(self._watch_liveness(liveness))

    async def _has_started_up(self) -> bool:
        probe = self._container.get("startupProbe")
        if not probe:
            return True
        result = ProbeResult.of(probe, passes_at_first=False)
        await self._delay(probe)
        while not result.add(await self._probe("Startup", probe)):
            await self._pause(probe)
        if not result.has_passed:
            self._failed("startup", probe)
        return result.has_passed

    async def _watch_readiness(self, probe: Manifest) -> None:
        result, has_ever_passed = ProbeResult.of(probe, passes_at_first=False), False
        await self._delay(probe)
        while True:
            before = result.has_passed
            result.add(await self._probe("Readiness", probe))
            if result.has_passed != before:
                has_ever_passed = True
                self._changed(True, result.has_passed)
            await self._pause(probe, longest_seconds=None if has_ever_passed else _UNREADY_PERIOD_SECONDS)

    async def _watch_liveness(self, probe: Manifest) -> None:
        result = ProbeResult.of(probe, passes_at_first=True)
        await self._delay(probe)
        while True:
            result.add(await self._probe("Liveness", probe))
            if not result.has_passed:
                self._failed("liveness", probe)
                return
            await self._pause(probe)

    async def _delay(self, probe: Manifest) -> None:
        if seconds := probe.get("initialDelaySeconds"):
            await sleep(self._clock, seconds)

    async def _pause(self, probe: Manifest, longest_seconds: float | None = None) -> None:
        seconds = probe.get("periodSeconds") or 10
        await sleep(self._clock, seconds if longest_seconds is None else min(seconds, longest_seconds))

    async def _probe(self, kind: str, probe: Manifest) -> bool:
        problem = await self._check(probe)
        if problem:
            self._record_event(f"{kind} probe failed: {problem}")
        return not problem
