"""How far a plan is, while it is made; Ctrl-C ends it between two steps."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any, Self

from moorage.cli.progress_display import ProgressDisplay, time_left
from moorage.planning.results import Interrupted


class PlanProgress(ProgressDisplay):
    """Shows how far a plan is."""

    def __init__(self, command: str, noun: str) -> None:
        """noun: what is counted."""
        super().__init__(command)
        self._noun = noun
        self._is_interrupted = False
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        signal.signal(signal.SIGINT, self._before)
        super().__exit__(*error)

    def update(self, done: int, total: int) -> None:
        """A step is done; Interrupted after Ctrl-C."""
        if self._is_interrupted:
            raise Interrupted
        if self.is_due():
            share = min(done / total, 1.0) if total else None
            text = f"{done:,} of {total:,} {self._noun}" if total else f"{done:,} {self._noun}"
            self.show(", ".join([text, *time_left(share, self.elapsed_seconds)]), share)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """The first Ctrl-C ends the plan after the present step, the second one at once."""
        self._is_interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
