"""The workload of a container that runs as a process, one start after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from moorage_cluster.nodes.simulated_program import Program
from moorage_cluster.nodes.workload import Probed, Report
from moorage_cluster.processes.container_process import ContainerProcess


class ProcessWorkload:
    """What runs in a container; `start_process` starts the next process."""

    is_simulated: ClassVar[bool] = False

    def __init__(
        self, start_process: Callable[[], ContainerProcess], program: Program, *, has_readiness: bool
    ) -> None:
        self.program = program
        self._start_process = start_process
        self._has_readiness = has_readiness
        self._process: ContainerProcess | None = None

    def start(self, now: float) -> None:
        """Start a process."""
        self._process = self._start_process()

    def adopt(self, since: float, *, is_ready: bool) -> bool:
        """False: processes do not outlive the program that has started them."""
        return False

    @property
    def due(self) -> float | None:
        """None: the time of the next report is not known in advance."""
        return None

    def next_report(self, now: float) -> Report | None:
        """The oldest report that has not been read yet."""
        while self._process is not None and self._process.reports:
            report = self._process.reports.popleft()
            if self._has_readiness or not isinstance(report, Probed):
                return report
        return None

    def stop(self, now: float, grace_seconds: float, *, after_completion: bool = False) -> None:
        """Send SIGTERM, and SIGKILL after the grace period."""
        if self._process is not None:
            self._process.stop(grace_seconds)

    def discard(self, grace_seconds: float) -> None:
        """Stop it without any further report."""
        if self._process is not None:
            self._process.discard(grace_seconds)
