"""What a process is doing: its threads and its tasks, told to a file when it is asked to."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

_ASKED = signal.SIGUSR1
_END = "-- all\n"
_MAX_SECONDS = 5.0
_PAUSE_SECONDS = 0.05


def tell_when_asked(path: Path) -> None:
    """Write stacks to a file whenever this process is asked to; those of threads even if Python is stuck."""
    file = path.open("w")

    def tell(number: int, frame: Any) -> None:
        _tell_tasks(file)

    signal.signal(_ASKED, tell)
    faulthandler.register(_ASKED, file, all_threads=True, chain=True)


def _tell_tasks(file: TextIO) -> None:
    with suppress(RuntimeError):  # There is no event loop.
        for task in asyncio.all_tasks():
            task.print_stack(file=file)
    file.write(_END)
    file.flush()


def stacks_of(pid: int, path: Path) -> str:
    """What a process, which writes to this file, is doing now."""
    os.kill(pid, _ASKED)
    end = time.monotonic() + _MAX_SECONDS
    while not path.read_text().endswith(_END) and time.monotonic() < end:
        time.sleep(_PAUSE_SECONDS)
    return path.read_text()
