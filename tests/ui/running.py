"""`moorage ui` in another process."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import Request, urlopen

from tests.up.running import line_with

WITHIN_SECONDS = 30


class RunningPage:
    """A page that is served; leaving its context ends it, and it has to end well."""

    def __init__(self, kubeconfig: Path, *options: str) -> None:
        words = [sys.executable, "-m", "moorage", "ui", "--port=0", f"--kubeconfig={kubeconfig}", *options]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        found = re.fullmatch(r"The page is at (http://127\.0\.0\.1:\d+)/\?token=(\S+)\n", self._first_line())
        assert found is not None
        self.origin, self.token = found.groups()
        self.url = f"{self.origin}/?token={self.token}"

    def _first_line(self) -> str:
        try:
            return line_with(self.process, "The page is at")
        except BaseException:
            self.process.kill()
            raise

    def open(self, path: str) -> Any:
        """The answer to a script that asks for a document, as it is being received."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return urlopen(Request(f"{self.origin}/api/v1/{path}", headers=headers), timeout=WITHIN_SECONDS)

    def get(self, path: str) -> Any:
        """A document."""
        with self.open(path) as answer:
            return json.load(answer)

    def ended_by(self, number: signal.Signals) -> tuple[int, str]:
        """The exit status after a signal, and what it complained of."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=WITHIN_SECONDS)
        return self.process.returncode, errors

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is not None:
            return
        try:
            assert self.ended_by(signal.SIGTERM) == (0, "") or error is not None
        finally:
            self.process.kill()
            self.process.communicate()
