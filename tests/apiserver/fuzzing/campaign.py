"""Long runs: several seeds in several processes, which may die.

A process works on one batch at a time: the requests that go to one server. One that dies or hangs is
replaced, and its batch is run once more with every request written down before it is sent: the last did it.
One that hangs says before what it is doing.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from rich.progress import Progress

from moorage_cluster.apiserver.embedded import Settings
from tests.apiserver.fuzzing.overhttp import run_http
from tests.apiserver.fuzzing.reports import Failure, Report
from tests.apiserver.fuzzing.request import Shot, load, saved_line
from tests.apiserver.fuzzing.runs import EPOCH, run
from tests.apiserver.fuzzing.stacks import stacks_of, tell_when_asked

_HTTP_EVERY = 20
"""One batch of so many goes over a socket."""
_FIRST_OVER_HTTP = 1
_HANGS_AFTER_SECONDS = 180.0
_MEMORY_POINTS = 10
_LEVEL_SHARE = 1.25
"""Memory at the end, as a share of memory after the first tenth, up to which it is back at its level."""
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests of a seed for one server."""

    seed: int
    first: int
    last: int
    settings: Settings
    over_http: bool

    def run(self, at: Synchronized[int]) -> Report:
        """Send them; `at` holds the number of the one that is under way."""

        def note(number: int, shot: Shot | None = None) -> None:
            at.value = number

        if self.over_http:
            return asyncio.run(run_http(self.seed, self.first, self.last, note))
        return self._run(note)

    def write_down(self, path: Path) -> None:
        """Send them, and write each to a file before."""
        with path.open("w", buffering=1) as file:
            self._run(lambda number, shot: print(saved_line(shot), file=file))

    def _run(self, at: Callable[[int, Shot], None]) -> Report:
        return asyncio.run(run(self.seed, self.first, self.last, settings=self.settings, at=at))


def batches(seeds: list[int], requests: int, settings: Settings) -> Iterator[Batch]:
    """So many requests of all seeds together, in batches of which some go over a socket."""
    share = -(-requests // len(seeds))
    for number, first in enumerate(range(0, share, EPOCH)):
        for seed in seeds:
            last = min(first + EPOCH, share) - 1
            yield Batch(seed, first, last, settings, number % _HTTP_EVERY == _FIRST_OVER_HTTP)


@dataclass(slots=True)
class Campaign:
    """All batches, and what has been seen of them."""

    waiting: deque[Batch]
    directory: Path
    report: Report = field(default_factory=Report)
    memory: list[tuple[int, float]] = field(default_factory=list)
    """How many requests had been sent, and the memory (MiB) of the process that sent the last of them."""

    def run(self, processes: int, seconds: float = inf) -> None:
        """Work through all batches, or through those that begin within some seconds; shows a bar."""
        begin = time.monotonic()
        workers = [_Worker(self.directory, at) for at in range(processes)]
        with Progress() as progress:
            total = sum(each.last + 1 - each.first for each in self.waiting)
            bar = progress.add_task("requests", total=total)
            while self.waiting or any(each.batch for each in workers):
                if time.monotonic() - begin > seconds:
                    self.waiting.clear()
                for at, worker in enumerate(workers):
                    if worker.batch is None and self.waiting:
                        worker.begin(self.waiting.popleft())
                    if worker.is_dead:
                        self._note_death(worker)
                        workers[at] = _Worker(self.directory, at)
                for worker in _answering(workers):
                    if result := worker.result():
                        self._note(*result)
                progress.update(bar, completed=self.report.requests)
        for worker in workers:
            worker.end()
        self.report.seconds = time.monotonic() - begin

    def _note(self, batch: Batch, report: Report, memory_mib: float) -> None:
        for failure in report.failures:
            failure.why = f"seed {batch.seed}: {failure.why}"
        self.report.add(report)
        self.memory.append((self.report.requests, memory_mib))

    def _note_death(self, worker: _Worker) -> None:
        batch, number = worker.batch, worker.at.value
        assert batch is not None
        why = f"seed {batch.seed}: the process {worker.end()}"
        shots = [] if batch.over_http else _last_shot(batch, self.directory / "fuzz-journal.jsonl")
        self.report.add(Report(number + 1 - batch.first, failures=[Failure(number, why, shots)]))

    @property
    def memory_verdict(self) -> str:
        """Memory over the run, and whether it is back at its level."""
        if len(self.memory) < _MEMORY_POINTS:
            return "too few requests to tell whether memory is level"
        step = len(self.memory) / _MEMORY_POINTS
        points = [self.memory[int((at + 1) * step) - 1] for at in range(_MEMORY_POINTS)]
        level, last = points[0][1], points[-1][1]
        shown = ", ".join(f"{requests}: {memory:.0f}" for requests, memory in points)
        verdict = "back at its level" if last <= level * _LEVEL_SHARE else "NOT back at its level"
        return f"memory (MiB) after requests: {shown}; {verdict}"


class _Worker:
    """A process that runs batches."""

    def __init__(self, directory: Path, number: int) -> None:
        self.batch: Batch | None = None
        self._stacks = directory / f"fuzz-stacks-{number}.txt"
        self.at = _SPAWN.Value("q", 0)
        self._seen, self._since = -1, time.monotonic()
        self.connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_work, args=(theirs, self.at, self._stacks), daemon=True)
        self._process.start()
        theirs.close()

    def begin(self, batch: Batch) -> None:
        self.batch = batch
        self._since = time.monotonic()
        self.connection.send(batch)

    def result(self) -> tuple[Batch, Report, float] | None:
        """The batch, what came of it, and the process' memory (MiB); None if the process died."""
        batch, self.batch = self.batch, None
        assert batch is not None
        try:
            report, memory_mib = self.connection.recv()
        except EOFError:
            self._process.join()
            self.batch = batch
            return None
        return batch, report, memory_mib

    @property
    def is_dead(self) -> bool:
        """Whether it ended, or has been at one request for too long; not if there is a result to read."""
        now = time.monotonic()
        if self.at.value != self._seen:
            self._seen, self._since = self.at.value, now
        is_over = not self._process.is_alive() or now - self._since > _HANGS_AFTER_SECONDS
        return self.batch is not None and is_over and not self._has_result

    @property
    def _has_result(self) -> bool:
        """Whether it sent a result; its end alone, which can be read too, is none."""
        try:
            return self.connection.poll() and self._process.is_alive()
        except OSError:
            return False

    def end(self) -> str:
        """Stop it; how it ended."""
        hung = self.batch is not None and self._process.is_alive()
        doing = stacks_of(self._process.pid or 0, self._stacks) if hung else ""
        self._process.kill()
        self._process.join()
        self._stacks.unlink(missing_ok=True)
        return f"hung:\n{doing}" if hung else f"died with {self._process.exitcode}"


def _answering(workers: list[_Worker]) -> list[_Worker]:
    ready = wait([each.connection for each in workers if each.batch], timeout=0.2)
    return [each for each in workers if each.connection in ready]


def _work(connection: Connection, at: Synchronized[int], stacks: Path) -> None:
    tell_when_asked(stacks)
    while True:
        batch: Batch = connection.recv()
        report = batch.run(at)
        gc.collect()
        connection.send((report, _resident_mib()))


def _last_shot(batch: Batch, journal: Path) -> list[Shot]:
    """The request at which a batch ends its process, or hangs."""
    again = _SPAWN.Process(target=batch.write_down, args=(journal,))
    again.start()
    again.join(_HANGS_AFTER_SECONDS)
    again.kill()
    shots = load(journal)
    journal.unlink()
    return shots[-1:]


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
