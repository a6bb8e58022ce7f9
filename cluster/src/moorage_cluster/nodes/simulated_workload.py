"""The workload of a simulated container: its program determines when it is ready and when it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from moorage_cluster.nodes.simulated_program import Program
from moorage_cluster.nodes.workload import Ended, Probed, Report, Started

KILLED: Final = 137
"""Exit code of a container that was killed: 128 and the number of SIGKILL."""
STOPPED: Final = 143
"""Exit code of a container that was asked to end: 128 and the number of SIGTERM."""


class SimulatedWorkload:
    """Follows a program, which may change while it runs; `stop_seconds` is how long stopping takes."""

    is_simulated: ClassVar[bool] = True

    def __init__(self, program: Program, *, has_readiness: bool, stop_seconds: Callable[[], float]) -> None:
        self.program = program
        self._has_readiness = has_readiness
        self._stop_seconds = stop_seconds
        self._since: float | None = None
        self._has_reported_start = False
        self._is_ready = False
        self._stop: Ended | None = None

    def start(self, now: float) -> None:
        """Start, at once."""
        self._since, self._has_reported_start, self._is_ready, self._stop = now, False, False, None

    def adopt(self, since: float, *, is_ready: bool) -> bool:
        """Continue as if it had been started here."""
        self._since, self._has_reported_start, self._is_ready, self._stop = since, True, is_ready, None
        return True

    @property
    def due(self) -> float | None:
        """The moment of the next report, if there will be one."""
        report = self._next
        return None if report is None else report.at

    def next_report(self, now: float) -> Report | None:
        """The oldest report up to now that has not been read yet."""
        report = self._next
        if report is None or report.at > now:
            return None
        if isinstance(report, Started):
            self._has_reported_start = True
        elif isinstance(report, Probed):
            self._is_ready = True
        else:
            self._since = None
        return report

    def stop(self, now: float, grace_seconds: float, *, after_completion: bool = False) -> None:
        """End after the time that stopping takes, within the grace period; at once after completion."""
        if after_completion:
            self._stop = Ended(now, 0, "Completed")
            return
        at = now + min(grace_seconds, self._stop_seconds())
        if self._stop is None or at < self._stop.at:
            self._stop = Ended(at, STOPPED, "Error")

    def discard(self, grace_seconds: float) -> None:
        """Reset the state."""
        self._since = None

    @property
    def _next(self) -> Started | Probed | Ended | None:
        if self._since is None:
            return None
        if not self._has_reported_start:
            return Started(self._since)
        end = self._end(self._since)
        ready_at = self._since + self.program.ready_after_seconds
        if self._has_readiness and not self._is_ready and (end is None or ready_at < end.at):
            return Probed(ready_at, is_started=True, is_ready=True)
        return end

    def _end(self, since: float) -> Ended | None:
        ends = [] if self._stop is None else [self._stop]
        if self.program.seconds is not None:
            code = self.program.exit_code
            ends.append(Ended(since + self.program.seconds, code, "Error" if code else "Completed"))
        out_of_memory = self.program.usage.out_of_memory_seconds
        if out_of_memory is not None:
            ends.append(Ended(since + out_of_memory, KILLED, "OOMKilled"))
        return min(ends, key=lambda each: each.at, default=None)
