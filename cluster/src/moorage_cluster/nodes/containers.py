"""The state machine of one container: waiting, running, terminated, and restarted with backoff.

Nothing here waits or writes: `step` does what is due at a moment, `due` is the time of the next change.
What runs in the container, and when it ends, is up to its workload.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from moorage.api.manifests import Manifest
from moorage.backoff import backoff_seconds
from moorage.config.duration import Duration
from moorage_cluster.nodes.simulated_workload import KILLED
from moorage_cluster.nodes.usage import NOTHING, ContainerUsage
from moorage_cluster.nodes.workload import Ended, Probed, Report, StartDelayed, Started, Workload

_INITIAL_BACKOFF_SECONDS: Final = 10.0
_MAX_BACKOFF_SECONDS: Final = 300.0
RESTART_SECONDS: Final = 1.0
"""Time until the kubelet restarts a container without backoff, in seconds."""
UNKNOWN_STATUS: Final = "ContainerStatusUnknown"
_LOST: Final = "The container could not be located when the pod was terminated"


class Role(Enum):
    """The role of a container in its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


@dataclass(frozen=True, slots=True)
class Waiting:
    """It is not running yet, or not at the moment."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """It runs."""

    since: float


@dataclass(frozen=True, slots=True)
class Terminated:
    """It has terminated; without times if it never ran."""

    exit_code: int
    reason: str
    message: str = ""
    since: float | None = None
    until: float | None = None
    container_id: str = ""


State = Waiting | Running | Terminated

CREATING: Final = Waiting("ContainerCreating")


class ContainerRun:
    """A container of a pod on a node; `described` names its pod in messages."""

    def __init__(
        self,
        spec: Manifest,
        role: Role,
        workload: Workload,
        pod_restart_policy: str,
        described: str,
        new_id: Callable[[], str],
    ) -> None:
        self.spec = spec
        self.role = role
        self.workload = workload
        self.state: State = CREATING
        self.last: Terminated | None = None
        self.restarts = 0
        self.container_id = ""
        self.is_started = False
        """Whether it is running, and its startup probe has passed."""
        self.is_ready = False
        self.start_at: float | None = None
        """When it starts or starts again."""
        self._is_starting = False
        self._is_stopping = False
        self._pod_restart_policy = pod_restart_policy
        self._described = described
        self._new_id = new_id
        self._restarts = 0
        self._restarted_at = 0.0

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self.spec["name"]
        return name

    @property
    def has_begun(self) -> bool:
        """Whether it is running or ever was."""
        return not isinstance(self.state, Waiting) or self.last is not None

    @property
    def is_to_start(self) -> bool:
        """Whether it starts, or will."""
        return self._is_starting or self.start_at is not None

    @property
    def ended(self) -> Terminated | None:
        """How it has terminated, if it has for good."""
        return self.state if isinstance(self.state, Terminated) and not self.is_to_start else None

    def usage(self, now: float) -> ContainerUsage:
        """What it uses."""
        if not isinstance(self.state, Running):
            return NOTHING
        return self.workload.program.usage.at(now - self.state.since)

    # -- time

    @property
    def due(self) -> float | None:
        """When it changes by itself, if that is known."""
        return self.workload.due if self.start_at is None else self.start_at

    def step(self, now: float) -> bool:
        """Do what is due; returns whether anything was."""
        changed = False
        while self._advance(now):
            changed = True
        return changed

    def _advance(self, now: float) -> bool:
        if self.start_at is not None:
            if self.start_at > now:
                return False
            self.workload.start(self.start_at)
            self.start_at, self._is_starting = None, True
            return True
        report = self.workload.next_report(now)
        if report is not None:
            self._apply(report)
        return report is not None

    def _apply(self, report: Report) -> None:
        match report:
            case Started(at, is_started):
                self._count_start(at)
                self.state, self.is_started = Running(at), is_started
            case StartDelayed(_, reason, message):
                self._keep_last()
                self.state = Waiting(reason, message)
            case Probed(_, is_started, is_ready):
                self.is_started, self.is_ready = is_started, is_ready
            case Ended(at, exit_code, reason, message):
                if not isinstance(self.state, Running):
                    self._count_start(at)
                self.end(at, exit_code, reason, message)

    def _count_start(self, now: float) -> None:
        self._is_starting = False
        self._keep_last()
        if self.last is not None:
            self.restarts += 1
            self._restarted_at = now
        self.container_id = self._new_id()

    def _keep_last(self) -> None:
        if isinstance(self.state, Terminated):
            self.last = self.state

    def stop(self, now: float, grace_seconds: float, *, after_completion: bool = False) -> None:
        """End within the grace period, and do not start again."""
        self._is_stopping, self.start_at = True, None
        if self._is_starting:
            self._is_starting = False
            self.workload.discard(0)
        elif isinstance(self.state, Running):
            self.workload.stop(now, grace_seconds, after_completion=after_completion)

    def end(self, now: float, exit_code: int, reason: str, message: str = "") -> None:
        """Terminate; unless it was to stop, it may be restarted with backoff, as its restart policy requires.

        The first restart has almost no backoff; then it is ten seconds, and doubles each time.
        """
        since = self.state.since if isinstance(self.state, Running) else None
        self.state = ended = Terminated(exit_code, reason, message, since, now, self.container_id)
        self.is_started = self.is_ready = False
        self.start_at = None
        if self._is_stopping or not self._restarts_after(exit_code):
            self.is_ready = self.role is Role.INIT and exit_code == 0
            return
        if not self._restarts or now - self._restarted_at > 2 * _MAX_BACKOFF_SECONDS:
            self._restarts = 1
            self.start_at = now + RESTART_SECONDS
            return
        pause = Duration(backoff_seconds(self._restarts, _INITIAL_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS))
        self.last = ended
        self.state = Waiting(
            "CrashLoopBackOff",
            f"back-off {pause} restarting failed container={self.name} pod={self._described}",
        )
        self.start_at = now + pause
        self._restarts += 1

    def resume(self, now: float) -> None:
        """Continue from the state that another kubelet left: a pending restart takes place now."""
        is_due = (
            self.last is not None
            if isinstance(self.state, Waiting)
            else isinstance(self.state, Terminated) and self._restarts_after(self.state.exit_code)
        )
        if is_due:
            self.start_at = now

    def renew(self) -> None:
        """Reset the state, as its sandbox is gone; that counts as a restart."""
        self.restarts += self.has_begun
        self.state, self.last, self.start_at = CREATING, None, None
        self.is_started = self.is_ready = False

    def abandon(self, now: float, exit_code: int, grace_seconds: float = 0.0) -> None:
        """Terminate in any state, because its pod ends."""
        self._is_stopping, self._is_starting, self.start_at = True, False, None
        self.is_ready = False
        self.workload.discard(grace_seconds)
        if isinstance(self.state, Running):
            self.end(now, exit_code, "Error" if exit_code else "Completed")
        elif isinstance(self.state, Waiting):
            self.state = self.last or Terminated(KILLED, UNKNOWN_STATUS, _LOST)

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
