"""Processes are started again when they end, and their ends are judged."""

from __future__ import annotations

import asyncio
import resource
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from moorage_cluster.chaos.real_processes.disk import Disk
from moorage_cluster.chaos.real_processes.process import SupervisedProcess

TIMEOUT_SECONDS = 30
WAITS = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('up', flush=True); "
WAITS += "[signal.pause() for _ in iter(int, 1)]"


class Watched:
    """A process of a program, and what it was found to do wrong."""

    def __init__(
        self, directory: Path, program: str, excused: str = "nothing", max_files: int | None = None
    ) -> None:
        self.failures: list[str] = []
        self.process = SupervisedProcess(
            "program",
            lambda: [sys.executable, "-c", program],
            directory,
            lambda status, log: excused in log,
            self.failures.append,
            max_files,
        )

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not holds():
                await asyncio.sleep(0.01)

    async def says(self, text: str) -> None:
        await self.until(lambda: text in self.process.log)


def play(watched: Watched, steps: Callable[[Watched], Awaitable[None]]) -> list[str]:
    async def run() -> None:
        await watched.process.start()
        try:
            await steps(watched)
        finally:
            await watched.process.destroy()

    asyncio.run(run())
    return watched.failures


def test_a_killed_process_is_started_again(tmp_path: Path) -> None:
    async def steps(watched: Watched) -> None:
        await watched.says("up")
        watched.process.kill(0.0)
        await watched.until(lambda: watched.process.starts == 2)
        await watched.says("up")
        await watched.process.terminate()
        assert not watched.process.is_running

    assert play(Watched(tmp_path, WAITS), steps) == []


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("print('why'); raise SystemExit(3)", "program ended by itself with status 3: why"),
        ("print('excused'); raise SystemExit(1)", None),
    ],
)
def test_only_some_processes_may_end_by_themselves(tmp_path: Path, program: str, failure: str | None) -> None:
    async def steps(watched: Watched) -> None:
        await watched.until(lambda: watched.process.starts > 1)

    failures = play(Watched(tmp_path, program, excused="excused"), steps)
    assert set(failures) == ({failure} if failure else set())


def test_a_process_must_end_with_status_0_when_it_is_asked_to(tmp_path: Path) -> None:
    async def steps(watched: Watched) -> None:
        await watched.says("up")
        await watched.process.terminate()

    program = WAITS.replace("sys.exit(0)", "sys.exit(7)")
    assert play(Watched(tmp_path, program), steps) == ["program ended with status 7, not 0: up"]


def test_a_process_that_was_stopped_is_asked_to_end_and_continues(tmp_path: Path) -> None:
    async def steps(watched: Watched) -> None:
        await watched.says("up")
        watched.process.send(signal.SIGSTOP)
        await watched.process.terminate()

    assert play(Watched(tmp_path, WAITS), steps) == []


def test_stacks_are_found_in_the_logs_of_all_processes(tmp_path: Path) -> None:
    async def steps(watched: Watched) -> None:
        await watched.until(lambda: watched.process.starts == 3)

    watched = Watched(tmp_path, "print('excused', flush=True); 1 / 0", excused="excused")
    assert watched.process.traces() == []
    play(watched, steps)
    assert watched.process.traces()[:2] == ["Traceback (most recent call last):"] * 2


def test_what_a_process_holds_is_measured_and_limited(tmp_path: Path) -> None:
    async def steps(watched: Watched) -> None:
        await watched.says("soft limit 64")
        usage = watched.process.usage()
        assert usage.files >= 3
        assert 1 << 20 < usage.resident_bytes < watched.process.address_space()

    program = (
        f"import resource; print('soft limit', resource.getrlimit({resource.RLIMIT_NOFILE})[0]); {WAITS}"
    )
    assert play(Watched(tmp_path, program, max_files=64), steps) == []


def test_a_disk_that_is_not_mounted_is_full_by_a_limit(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "objects.db").write_bytes(bytes(10_000))  # More than the log.
    program = (
        "import os, signal\n"
        "def grow(*_):\n"
        "    try:\n"
        f"        open({str(data / 'objects.db')!r}, 'ab').write(b'more')\n"
        "        print('grown', flush=True)\n"
        "    except OSError as error:\n"
        "        print(error.strerror, flush=True)\n"
        f"signal.signal(signal.SIGUSR1, grow)\n{WAITS}"
    ).replace("'ab')", "'ab', buffering=0)")
    disk = Disk(data, is_mounted=False)

    async def steps(watched: Watched) -> None:
        await watched.says("up")
        disk.fill(watched.process)
        watched.process.send(signal.SIGUSR1)
        await watched.says("File too large")
        disk.empty(watched.process)
        watched.process.send(signal.SIGUSR1)
        await watched.says("grown")
        with suppress(ProcessLookupError):
            await watched.process.terminate()

    assert play(Watched(tmp_path, program), steps) == []
