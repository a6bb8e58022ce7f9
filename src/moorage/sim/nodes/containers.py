"""One container over time: waiting, running, ended, and running again after a pause that grows.

Nothing here waits or writes: `step` does what is due at a moment, `due` says when there is something again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from moorage.api.manifests import Manifest
from moorage.config.duration import Duration
from moorage.sim.nodes.program import Program
from moorage.sim.nodes.usage import NOTHING, Usage

FIRST_PAUSE_SECONDS: Final = 10.0
LONGEST_PAUSE_SECONDS: Final = 300.0
RESTART_SECONDS: Final = 1.0
"""Until the kubelet has noticed and started it again, where there is no pause."""
KILLED: Final = 137
"""How a container ends that is killed: 128 and the number of SIGKILL."""
STOPPED: Final = 143
"""How a container ends that is asked to, and does not say otherwise: 128 and the number of SIGTERM."""
_LOST: Final = "The container could not be located when the pod was terminated"


class Role(Enum):
    """What a container is for its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


@dataclass(frozen=True, slots=True)
class Waiting:
    """It does not run yet, or not at the moment."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """It runs."""

    since: float


@dataclass(frozen=True, slots=True)
class Terminated:
    """It has ended; without times if it never ran."""

    exit_code: int
    reason: str
    message: str = ""
    since: float | None = None
    until: float | None = None
    container_id: str = ""


State = Waiting | Running | Terminated


class ContainerRun:
    """A container of a pod on a node; `described` is how its pod is called in messages."""

    def __init__(
        self,
        spec: Manifest,
        role: Role,
        program: Program,
        pod_restart_policy: str,
        described: str,
        new_id: Callable[[], str],
    ) -> None:
        self.spec = spec
        self.role = role
        self.program = program
        self.state: State = Waiting("ContainerCreating")
        self.last: Terminated | None = None
        self.restarts = 0
        self.container_id = ""
        self.is_ready = False
        self.start_at: float | None = None
        """When it starts or starts again."""
        self._pod_restart_policy = pod_restart_policy
        self._described = described
        self._new_id = new_id
        self._pause_seconds = 0.0
        self._restarted_at = 0.0

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self.spec["name"]
        return name

    @property
    def has_begun(self) -> bool:
        """Whether it runs or ever did."""
        return not isinstance(self.state, Waiting) or self.last is not None

    @property
    def ended(self) -> Terminated | None:
        """How it has ended, if it has for good."""
        if isinstance(self.state, Terminated) and self.start_at is None:
            return self.state
        return None

    def usage(self, now: float) -> Usage:
        """What it uses."""
        return self.program.usage.at(now - self.state.since) if isinstance(self.state, Running) else NOTHING

    # -- time

    @property
    def due(self) -> float | None:
        """When it changes by itself, if ever."""
        if not isinstance(self.state, Running):
            return self.start_at
        moments = [self._end[0]] if self._end is not None else []
        if not self.is_ready and self.role is not Role.INIT:
            moments.append(self.state.since + self.program.ready_after_seconds)
        return min(moments, default=None)

    def step(self, now: float) -> bool:
        """Do what is due; whether that was anything."""
        changed = False
        while (due := self.due) is not None and due <= now:
            changed = True
            if not isinstance(self.state, Running):
                self._start(due)
            elif self._end is not None and self._end[0] <= due:
                self.end(*self._end)
            else:
                self.is_ready = True
        return changed

    @property
    def _end(self) -> tuple[float, int, str] | None:
        """When, with which code and why it ends by itself."""
        if not isinstance(self.state, Running):
            return None
        ends: list[tuple[float, int, str]] = []
        since = self.state.since
        if self.program.seconds is not None:
            code = self.program.exit_code
            ends.append((since + self.program.seconds, code, "Error" if code else "Completed"))
        seconds = self.program.usage.out_of_memory_seconds
        if seconds is not None:
            ends.append((since + seconds, KILLED, "OOMKilled"))
        return min(ends, default=None)

    def _start(self, now: float) -> None:
        if isinstance(self.state, Terminated):
            self.last = self.state
        if self.last is not None:
            self.restarts += 1
            self._restarted_at = now
        self.state = Running(now)
        self.start_at = None
        self.container_id = self._new_id()
        self.is_ready = self.role is not Role.INIT and self.program.ready_after_seconds <= 0

    def end(self, now: float, exit_code: int, reason: str, *, for_good: bool = False) -> None:
        """It ends; unless for good, it may start again after a pause, as its restart policy has it.

        The first time there is no pause worth the name; then it is ten seconds, and doubles each time.
        """
        since = self.state.since if isinstance(self.state, Running) else None
        self.state = ended = Terminated(exit_code, reason, "", since, now, self.container_id)
        self.is_ready = False
        self.start_at = None
        if for_good or not self._restarts_after(exit_code):
            self.is_ready = self.role is Role.INIT and exit_code == 0
            return
        if not self._pause_seconds or now - self._restarted_at > 2 * LONGEST_PAUSE_SECONDS:
            self._pause_seconds = FIRST_PAUSE_SECONDS
            self.start_at = now + RESTART_SECONDS
            return
        pause = Duration(self._pause_seconds)
        self.last = ended
        self.state = Waiting(
            "CrashLoopBackOff",
            f"back-off {pause} restarting failed container={self.name} pod={self._described}",
        )
        self.start_at = now + pause
        self._pause_seconds = min(2 * self._pause_seconds, LONGEST_PAUSE_SECONDS)

    def resume(self, now: float) -> None:
        """It was found as another kubelet left it: if that was about to start it again, it starts now."""
        is_due = (
            self.last is not None
            if isinstance(self.state, Waiting)
            else isinstance(self.state, Terminated) and self._restarts_after(self.state.exit_code)
        )
        if is_due:
            self.start_at = now

    def abandon(self, now: float, exit_code: int) -> None:
        """Its pod ends, and so does it, whatever it was doing."""
        self.start_at = None
        self.is_ready = False
        if isinstance(self.state, Running):
            self.end(now, exit_code, "Error" if exit_code else "Completed", for_good=True)
        elif isinstance(self.state, Waiting):
            self.state = self.last or Terminated(KILLED, "ContainerStatusUnknown", _LOST)

    def _restarts_after(self, exit_code: int) -> bool:
        for rule in self.spec.get("restartPolicyRules") or ():
            codes = rule.get("exitCodes") or {}
            is_among = exit_code in (codes.get("values") or ())
            if rule.get("action") == "Restart" and is_among == (codes.get("operator") == "In"):
                return True
        policy = self.spec.get("restartPolicy") or self._pod_restart_policy
        if self.role is Role.INIT:
            # An init container has nothing more to do once it has succeeded.
            return exit_code != 0 and policy != "Never"
        return policy == "Always" or (policy == "OnFailure" and exit_code != 0)
