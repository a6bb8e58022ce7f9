"""One run: processes are started, used and disturbed; then everything has to come right within a bound."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from moorage_cluster.chaos.real_processes.audit_trail import AuditTrail
from moorage_cluster.chaos.real_processes.deployment import START_SECONDS, Deployment
from moorage_cluster.chaos.real_processes.disk import Disk, data_disk
from moorage_cluster.chaos.real_processes.faults import STEP_SECONDS, Injector
from moorage_cluster.chaos.real_processes.final_checks import bindings_are_seen, growth, levels, recovery
from moorage_cluster.chaos.real_processes.observer import Observer
from moorage_cluster.chaos.real_processes.scenarios import Plan
from moorage_cluster.chaos.real_processes.users import Ledger, User

MAX_VIOLATIONS: Final = 20
"""Number of violations that are kept of a run."""
_USERS: Final = 4
_WARM_PODS: Final = 20
"""Number of pods that are bound before anything fails."""


class Outcome(msgspec.Struct):
    """What a run has shown."""

    violations: list[str] = []
    injected: dict[str, int] = {}
    """What was done to processes, and how often."""
    acknowledged: int = 0
    """Number of writes of users that were acknowledged."""
    failed: int = 0
    """Number of requests of users that failed."""
    bound: int = 0
    """Number of pods that were bound."""
    takeovers: int = 0
    """Number of times that another process became the leader."""
    starts: int = 0
    """Number of processes that were started."""
    late: int = 0
    """Number of writes that came late because the API server did not answer."""
    more_bytes: int = 0
    """By how much the memory of a process has grown that was never started again, at most."""
    more_files: int = 0
    """By how much its number of open files has grown, at most."""
    recovery_seconds: float = 0.0
    """Time from the last fault until everything had come right."""


def run_plan(plan: Plan, directory: Path) -> Outcome:
    """Run a plan; logs and data are in a directory that is there and empty."""
    with data_disk(directory / "data") as disk:
        return asyncio.run(_Run(plan, directory, disk).play())


class _Run:
    def __init__(self, plan: Plan, directory: Path, disk: Disk) -> None:
        self._plan = plan
        self._random = Random(f"{plan.scenario} {plan.seed} users")
        self._outcome = Outcome()
        self._began_at = time.monotonic()
        self._deployment = Deployment(plan, directory, disk, self._failed)
        self._trail = AuditTrail(self._deployment.audit_log, self._failed)
        self._injector = Injector(self._deployment, self._trail, self._random, self._failed)
        self._ledger = Ledger()
        self._stopped = asyncio.Event()

    def _failed(self, what: str) -> None:
        if len(self._outcome.violations) < MAX_VIOLATIONS:
            self._outcome.violations.append(f"{time.monotonic() - self._began_at:.1f} s: {what}")

    async def play(self) -> Outcome:
        """Play the plan, and look whether all is well."""
        try:
            try:
                async with asyncio.timeout(START_SECONDS):
                    await self._deployment.start(self._wait)
            except TimeoutError:
                self._failed(f"the processes did not start within {START_SECONDS:g} s")
            else:
                await self._use()
                for process in reversed(self._deployment.processes):
                    await process.terminate()
        finally:
            for process in self._deployment.processes:
                await process.destroy()
        self._trail.read()
        self._read_logs()
        return self._result()

    async def _wait(self) -> None:
        await asyncio.sleep(STEP_SECONDS)

    async def _use(self) -> None:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(self._deployment.client("chaos-observer"))
            observer = Observer(client, self._failed)
            observing = asyncio.create_task(observer.run())
            stack.push_async_callback(_cancelled, observing)
            users = [asyncio.create_task(self._work(number, stack)) for number in range(_USERS)]
            await self._warm(observer)
            faults = [asyncio.create_task(self._injector.inject(each)) for each in self._plan.faults]
            reading = asyncio.create_task(self._read_audit_log())
            stack.push_async_callback(_cancelled, reading, *faults, *users)
            await asyncio.gather(asyncio.sleep(self._plan.seconds), *faults)
            self._stopped.set()
            await asyncio.gather(*users)
            await self._recover(observer)

    async def _work(self, number: int, stack: AsyncExitStack) -> None:
        client = await stack.enter_async_context(self._deployment.client(f"chaos-user-{number}"))
        random = Random(self._random.random())
        await User(f"pod-{number}", client, random, self._ledger, _USERS).work(self._stopped)

    async def _warm(self, observer: Observer) -> None:
        """Wait until pods are bound and the standby stands by, and note what the processes hold then."""
        try:
            async with asyncio.timeout(START_SECONDS):
                await observer.pods.until(lambda: observer.bound >= _WARM_PODS)
                while not self._are_candidates():
                    await self._wait()
        except TimeoutError:
            self._failed(f"no {_WARM_PODS} pods were bound with a standby within {START_SECONDS:g} s")
        levels = self._deployment.measure()
        for process in self._deployment.processes:
            process.level = levels.get(process.name)

    def _are_candidates(self) -> bool:
        """Whether all processes serve, and all schedulers know of the lease."""
        self._trail.read()
        return not self._deployment.not_ready() and self._deployment.running_users <= self._trail.candidates

    async def _read_audit_log(self) -> None:
        while True:
            self._trail.read()
            await self._wait()

    async def _recover(self, observer: Observer) -> None:
        began_at = time.monotonic()
        for each in await recovery(self._deployment, self._trail, observer, self._ledger):
            self._failed(each)
        self._outcome.recovery_seconds = time.monotonic() - began_at
        self._trail.read()
        for each in (*bindings_are_seen(self._trail, observer), *await levels(self._deployment)):
            self._failed(each)
        grown = growth(self._deployment)
        self._outcome.more_bytes, self._outcome.more_files = grown.resident_bytes, grown.files
        self._outcome.bound = observer.bound

    def _read_logs(self) -> None:
        if self._deployment.is_short_of_memory:
            return  # Any allocation may have failed.
        for process in self._deployment.processes:
            for line in process.traces()[:1]:
                self._failed(f"{process.name} logged {line!r}")

    def _result(self) -> Outcome:
        outcome, trail = self._outcome, self._trail
        outcome.injected = dict(sorted(self._injector.injected.items()))
        outcome.acknowledged, outcome.failed = self._ledger.acknowledged, self._ledger.failed
        outcome.takeovers, outcome.late = trail.takeovers, trail.late
        outcome.starts = sum(each.starts for each in self._deployment.processes)
        return outcome


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task
