"""Programs that say what they do, line by line."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

OUTPUT_TIMEOUT_SECONDS = 30


class Program:
    """A program that runs until the context is left; what it says can be waited for."""

    def __init__(self, *words: str, folder: Path, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=environment,
        )
        self.lines: list[str] = []
        self._seen = 0
        self._received = threading.Condition()
        self._is_over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._received:
                self.lines.append(line.rstrip("\n"))
                self._received.notify_all()
        with self._received:
            self._is_over = True
            self._received.notify_all()

    def says(self, text: str) -> str:
        """The next line that contains a text; waits for it."""

        def is_there() -> bool:
            return self._is_over or any(text in line for line in self.lines[self._seen :])

        with self._received:
            self._received.wait_for(is_there, OUTPUT_TIMEOUT_SECONDS)
            for number in range(self._seen, len(self.lines)):
                if text in self.lines[number]:
                    self._seen = number + 1
                    return self.lines[number]
        raise AssertionError(f"it did not say {text!r}: {self.lines}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        try:
            self.process.wait(OUTPUT_TIMEOUT_SECONDS)
        finally:
            self.process.kill()
            self.process.wait()
            self._reader.join()
            assert self.process.stdout is not None
            self.process.stdout.close()
