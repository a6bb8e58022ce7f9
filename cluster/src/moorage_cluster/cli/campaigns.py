"""What commands of campaigns share: progress in runs, and an end in order by SIGINT and SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moorage.cli.progress_display import ProgressDisplay, time_left


class RunProgress(ProgressDisplay):
    """Shows how many runs have ended, and how many of them failed."""

    def __init__(self, command: str, total: int) -> None:
        super().__init__(command)
        self._total = total
        self._done = self._failed = 0

    def update(self, runs: int, failed: int, last: str = "") -> None:
        """Some more have ended; last: the one that ended last."""
        self._done += runs
        self._failed += failed
        if self.is_due():
            share = self._done / self._total
            text = f"{self._done:,} of {self._total:,} runs, {self._failed} failed"
            parts = [text, *([f"last {last}"] if last else []), *time_left(share, self.elapsed_seconds)]
            self.show(", ".join(parts), share)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM interrupts as SIGINT does: there is a report, and no process is left over."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
