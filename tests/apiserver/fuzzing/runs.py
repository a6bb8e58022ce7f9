"""Runs: many requests, a new server every so many, and what to do when something is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from moorage_cluster.apiserver.embedded import Settings
from tests.apiserver.client import WITH_GROUPS
from tests.apiserver.fuzzing.checks import Wrong
from tests.apiserver.fuzzing.generator import Generator
from tests.apiserver.fuzzing.inprocess import Target, gathered_complaints
from tests.apiserver.fuzzing.reports import Failure, Report
from tests.apiserver.fuzzing.request import Shot

EPOCH = 2000
"""So many requests go to a server before a fresh one takes its place; a failure is repeated from there."""
CHECK_EVERY = 250
_MAX_FAILURES = 25


async def run(
    seed: int,
    first: int,
    last: int,
    tell: Callable[[str], None] = lambda text: None,
    settings: Settings | None = None,
    *,
    persistent: bool = False,
    at: Callable[[int, Shot], None] = lambda number, shot: None,
) -> Report:
    """Send requests `first` to `last` of a seed; those before `first` on the same server are sent too.

    persistent: servers keep their objects in a directory, and must find them there again. `at` is told of
    each request before it is sent.
    """
    begin = time.monotonic()
    with gathered_complaints() as complaints:
        running = _Run(seed, complaints, tell, at)
        for start in range(first - first % EPOCH, last + 1, EPOCH):
            numbers = range(start, min(start + EPOCH, last + 1))
            with TemporaryDirectory() as directory:
                kept = Path(directory) if persistent else None
                await running.epoch(
                    numbers, replace(settings or Settings(version=WITH_GROUPS), data_dir=kept)
                )
            if len(running.report.failures) >= _MAX_FAILURES:
                break
    running.report.seconds = time.monotonic() - begin
    return running.report


class _Run:
    """A run that is going on."""

    def __init__(
        self,
        seed: int,
        complaints: list[str],
        tell: Callable[[str], None],
        at: Callable[[int, Shot], None],
    ) -> None:
        self._seed = seed
        self._at = at
        self._complaints = complaints
        self._tell = tell
        self._generator = Generator(seed)
        self._known: set[str] = set()
        self.report = Report()

    async def epoch(self, numbers: range, settings: Settings) -> None:
        """Send requests to a fresh server, from its first to its last."""
        self._generator.forget()
        target = Target(self._complaints, settings)
        history: list[Shot] = []
        for shot in self._generator.prelude():
            history.append(shot)
            await target.fire(shot)
        for number in numbers:
            shot = self._generator.shot(number)
            history.append(shot)
            try:
                await self._fire(target, number, shot)
                if number % CHECK_EVERY == CHECK_EVERY - 1 or number == numbers[-1]:
                    await target.check()
            except Wrong as wrong:
                self._note(Failure(number, str(wrong), history.copy()))
        try:
            await target.close()
            if settings.data_dir is not None:
                target.check_reopened()
        except Wrong as wrong:
            self._note(Failure(numbers[-1], str(wrong), history))

    async def _fire(self, target: Target, number: int, shot: Shot) -> None:
        start = time.perf_counter()
        self._at(number, shot)
        code, answer = await target.fire(shot)
        self.report.note(number, shot, code, time.perf_counter() - start)
        self._generator.memory.learn(shot, code, answer)

    def _note(self, failure: Failure) -> None:
        """Tell of a failure, unless there was one of the same cause before."""
        if failure.signature not in self._known:
            self._known.add(failure.signature)
            self.report.failures.append(failure)
            self._tell(f"seed {self._seed}, request {failure.number}: {failure.why}\n{failure.shots[-1]}\n")


async def replay(shots: list[Shot], settings: Settings | None = None) -> tuple[list[int], str]:
    """Send saved requests to a fresh server: their codes, and what went wrong, if something did."""
    codes: list[int] = []
    with gathered_complaints() as complaints:
        target = Target(complaints, settings)
        try:
            for shot in shots:
                code, _ = await target.fire(shot)
                codes.append(code)
            await target.check()
            await target.close()
        except Wrong as wrong:
            return codes, str(wrong)
    return codes, ""


async def shortened(
    failure: Failure, settings: Settings | None = None, most_seconds: float = 60.0
) -> list[Shot]:
    """Fewer requests that still fail: those before the last are left out where they do not matter."""
    shots, end = failure.shots, time.monotonic() + most_seconds
    if not (await replay(shots, settings))[1]:
        return shots
    size = len(shots) - 1
    while size:
        at = 0
        while at < len(shots) - 1 and time.monotonic() < end:
            fewer = shots[:at] + shots[min(at + size, len(shots) - 1) :]
            if (await replay(fewer, settings))[1]:
                shots = fewer
            else:
                at += size
        size //= 2
    return shots
