"""The directory of all processes of a runtime, and the process that cleans up after them (see `sweeper`)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from moorage_cluster.processes import sweeper


class Sweeper:
    """Tracks process groups; they and the directory are removed after this process, even if it is killed."""

    def __init__(self) -> None:
        self.folder = Path(mkdtemp(prefix="moorage-containers-"))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", sweeper.__file__, str(self.folder)],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def add(self, pid: int) -> None:
        """Record the start of a process group."""
        self._send(f"+{pid}\n")

    def remove(self, pid: int) -> None:
        """Record the end of a process group."""
        self._send(f"-{pid}\n")

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(line)
            self._process.stdin.flush()

    async def close(self) -> None:
        """End all groups and remove the directory."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await asyncio.to_thread(self._process.wait)
