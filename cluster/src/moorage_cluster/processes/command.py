"""The command that runs in place of a container: words, variables and a working directory of this machine."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, STDOUT, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGKILL
from typing import Final

PROGRAM: Final = "moorage"
"""The command that runs as a process without any annotation: this program itself."""
_CHUNK_BYTES: Final = 64 << 10
_LAST_OUTPUT_SECONDS: Final = 1.0
"""Time limit for reading the output of an ended process, in seconds, in case another one holds it open."""


class CommandError(Exception):
    """There is no command (yet); the message is that of the waiting container."""


@dataclass(frozen=True, slots=True)
class Command:
    """A process; `rewrite` replaces the paths and addresses of a pod's spec by those of this machine."""

    words: Sequence[str]
    variables: Mapping[str, str]
    folder: Path
    rewrite: Callable[[str], str]

    def with_words(self, words: Sequence[str]) -> Command:
        """Another command of the same container."""
        return replace(self, words=[self.rewrite(word) for word in words])

    async def launch(self) -> Launched:
        """Start the process in a group of its own; OSError or ValueError if that fails."""
        first, *others = self.words
        program = (sys.executable, "-m", PROGRAM) if first == PROGRAM else (first,)
        read_end, write_end = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *program,
                *others,
                env=self.variables,
                cwd=self.folder,
                stdin=DEVNULL,
                stdout=write_end,
                stderr=STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError):
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        return await Launched.connected(process, read_end)

    async def run(self) -> tuple[int, bytes]:
        """Run the process to its end; returns its exit code and its output."""
        launched = await self.launch()
        output: list[bytes] = []
        reading = asyncio.ensure_future(launched.read(output.append))
        try:
            code = await launched.process.wait()
        finally:
            await launched.finish(reading)
        return code, b"".join(output)


@dataclass(frozen=True, slots=True)
class Launched:
    """A process that was started, and its output: one pipe, which its children may hold open."""

    process: Process
    _output: asyncio.StreamReader
    _pipe: asyncio.BaseTransport

    @classmethod
    async def connected(cls, process: Process, read_end: int) -> Launched:
        """A process with its output from a file descriptor."""
        output = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        pipe, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(output), os.fdopen(read_end, "rb", 0)
        )
        return cls(process, output, pipe)

    async def read(self, write: Callable[[bytes], None]) -> None:
        """Pass on all output until its end."""
        while data := await self._output.read(_CHUNK_BYTES):
            write(data)

    async def finish(self, reading: asyncio.Future[None]) -> None:
        """Kill the rest of the process group, and let `read` read the rest of the output."""
        kill_group(self.process.pid)
        await asyncio.wait([reading], timeout=_LAST_OUTPUT_SECONDS)
        reading.cancel()
        self._pipe.close()


def kill_group(pid: int) -> None:
    """Kill a process group, if any of it still runs."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, SIGKILL)
