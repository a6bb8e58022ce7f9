"""A page that a command in another process shows."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

WITHIN_SECONDS = 60
_ADDRESS = re.compile(r"The page is at (http://127\.0\.0\.1:\d+)/\?token=(\S+)")


class PageAddress(NamedTuple):
    """Where a page is, and its token."""

    origin: str
    token: str

    def get(self, path: str) -> Any:
        """A document of its API."""
        request = Request(f"{self.origin}/api/v1/{path}", headers={"Authorization": f"Bearer {self.token}"})
        with urlopen(request, timeout=WITHIN_SECONDS) as answer:
            return json.load(answer)


def page_of(process: subprocess.Popen[str]) -> PageAddress:
    """The page that a command shows, from its output; the command must not end before."""
    assert process.stdout is not None
    # Whoever says nothing is ended, which ends the lines, too.
    patience = threading.Timer(WITHIN_SECONDS, process.kill)
    patience.start()
    try:
        for line in process.stdout:
            found = _ADDRESS.match(line)
            if found is not None:
                return PageAddress(*found.groups())
    finally:
        patience.cancel()
    raise AssertionError(f"{process.args!r} shows no page")


def children(process: subprocess.Popen[str]) -> list[str]:
    """The command lines of the processes that a process has started."""
    listed = Path(f"/proc/{process.pid}/task").glob("*/children")
    numbers = [number for each in listed for number in each.read_text().split()]
    return [Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode() for number in numbers]


def all_end(process: subprocess.Popen[str]) -> None:
    """A process ends, and all that write to its output."""
    assert process.stdout is not None
    reading = threading.Thread(target=process.stdout.read, daemon=True)
    reading.start()
    reading.join(WITHIN_SECONDS)
    assert not reading.is_alive(), f"a process that {process.args!r} has started does not end"
    process.wait(WITHIN_SECONDS)
