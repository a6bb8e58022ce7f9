"""One process that is started again when it ends; its status, its log, its memory and descriptors."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

RESTART_SECONDS: Final = 0.5
"""How long after its end a process is started again, in seconds."""
TERMINATION_SECONDS: Final = 60.0
"""Time limit of a graceful end, in seconds."""
_LAST_LINES: Final = 3
_TRACES: Final = ("Traceback (most recent call last)", "exception was never retrieved")
"""What a log must not have."""

Excuse = Callable[[int, str], bool]
"""Whether a process may end by itself with a status and a log."""
Words = Callable[[], Sequence[str]]


class Usage(NamedTuple):
    """What a process holds."""

    resident_bytes: int
    files: int


class SupervisedProcess:
    """A process that is started again when it ends, as a kubelet does.

    words: the command line of the next start. excuse: see `Excuse`. failed: called with what must not happen.
    """

    def __init__(
        self,
        name: str,
        words: Words,
        directory: Path,
        excuse: Excuse,
        failed: Callable[[str], None],
        max_files: int | None = None,
    ) -> None:
        self.name = name
        self._words = words
        self._directory = directory
        self._log_path = directory / f"{name}.log"
        self._excuse = excuse
        self._failed = failed
        self._max_files = max_files
        self._process: Process | None = None
        self._log_begin = 0
        self._is_killed = False
        self._restart_seconds = RESTART_SECONDS
        self._is_ending = False
        self._following: asyncio.Task[None] | None = None
        self.starts = 0
        """Number of times the process was started."""
        self.level: Usage | None = None
        """What the running process held before anything happened to it; None: it was started later."""

    # -- from start to end

    async def start(self) -> None:
        """Start the process, and keep it running."""
        await self._start()
        self._following = asyncio.create_task(self._follow())

    async def _start(self) -> None:
        self.starts += 1
        self._is_killed, self._restart_seconds = False, RESTART_SECONDS
        words = list(self._words())
        if self._max_files is not None:
            words = ["/bin/sh", "-c", 'ulimit -n "$0" && exec "$@"', str(self._max_files), *words]
        with self._log_path.open("ab") as log:
            self._log_begin = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                *words, stdin=DEVNULL, stdout=log, stderr=log, cwd=self._directory
            )

    async def _follow(self) -> None:
        while True:
            assert self._process is not None
            status = await self._process.wait()
            self.level = None
            self._judge(status)
            if self._is_ending:
                return
            await asyncio.sleep(self._restart_seconds)
            await self._start()

    def _judge(self, status: int) -> None:
        if self._is_killed:
            wanted = -signal.SIGKILL
        elif self._is_ending:
            wanted = 0
        elif self._excuse(status, self.log):
            return
        else:
            self._failed(f"{self.name} ended by itself with status {status}: {self._last_lines()}")
            return
        if status != wanted:
            self._failed(f"{self.name} ended with status {status}, not {wanted}: {self._last_lines()}")

    def kill(self, restart_seconds: float) -> None:
        """Kill the process; another one is started after some seconds."""
        if self.is_running:
            self._is_killed, self._restart_seconds = True, restart_seconds
            self.send(signal.SIGKILL)

    async def terminate(self) -> None:
        """Ask the process to end, and wait for it; it is killed if it does not."""
        if self._following is None:
            return
        self._is_ending = True
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        _, waiting = await asyncio.wait((self._following,), timeout=TERMINATION_SECONDS)
        if waiting:
            self._failed(f"{self.name} did not end within {TERMINATION_SECONDS:g} s: {self._last_lines()}")
            self._is_killed = True
            self.send(signal.SIGKILL)
        await self._following

    async def destroy(self) -> None:
        """End the process at once, whatever it does, and forget it."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        if self._process is not None:
            self.send(signal.SIGKILL)
            await self._process.wait()

    # -- what is done to it

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.returncode is None

    @property
    def _pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if there is a process."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def limit(self, kind: int, amount: int) -> None:
        """Set a soft limit of the running process; RLIM_INFINITY: as much as it may have."""
        if self.is_running:
            with suppress(ProcessLookupError):
                _, hard = resource.prlimit(self._pid, kind)
                resource.prlimit(
                    self._pid, kind, (hard if amount == resource.RLIM_INFINITY else amount, hard)
                )

    # -- what can be seen of it

    @property
    def log(self) -> str:
        """What the process has logged."""
        with self._log_path.open("rb") as log:
            log.seek(self._log_begin)
            return log.read().decode(errors="replace")

    def _last_lines(self) -> str:
        return " | ".join(self.log.splitlines()[-_LAST_LINES:])

    def traces(self) -> list[str]:
        """The lines that follow a stack in the logs of all processes of this name."""
        if not self._log_path.exists():
            return []
        lines = self._log_path.read_text(errors="replace").splitlines()
        return [line for line in lines if any(trace in line for trace in _TRACES)]

    def usage(self) -> Usage:
        """What the running process holds; OSError if there is none."""
        pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1])
        return Usage(pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(f"/proc/{self._pid}/fd")))

    def address_space(self) -> int:
        """The size of the running process's address space, in bytes."""
        pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[0])
        return pages * os.sysconf("SC_PAGE_SIZE")
