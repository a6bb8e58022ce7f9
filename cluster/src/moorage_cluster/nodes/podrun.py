"""The state machine of one pod on a node: the order of its containers, and its end.

Init containers run first, one after another; sidecars start in between and keep running; then all others
start together. As with containers, nothing here waits or writes: `step` does what is due, `due` is when.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from moorage.api.manifests import Manifest
from moorage_cluster.nodes.admission import PodResources
from moorage_cluster.nodes.containers import CREATING, ContainerRun, Role, Running, Waiting
from moorage_cluster.nodes.simulated_workload import KILLED, STOPPED
from moorage_cluster.nodes.usage import NOTHING, ContainerUsage
from moorage_cluster.nodes.workload import Sandbox

FINISHED: Final = ("Succeeded", "Failed")
_DEADLINE: Final = "Pod was active on the node longer than the specified deadline"

StartsAt = Callable[["PodRun", Sequence[ContainerRun], float], float]
"""When containers of a pod are running if they are started now: images may have to be pulled."""


@dataclass(frozen=True, slots=True)
class PodOutcome:
    """The outcome of a pod that was killed or rejected."""

    phase: str
    reason: str
    message: str


class PodRun:
    """A pod that a kubelet has admitted (or rejected: then it has an outcome from the beginning)."""

    def __init__(self, manifest: Manifest, containers: Sequence[ContainerRun], starts_at: StartsAt) -> None:
        self.manifest = manifest
        self.inits = [each for each in containers if each.role is not Role.MAIN]
        self.mains = [each for each in containers if each.role is Role.MAIN]
        self.containers = tuple(containers)
        self.started_at: float | None = None
        self.ip = ""
        self.claims: PodResources | None = None
        """The resources that it takes of its node, while it does."""
        self.pending_resize = ""
        """Why its resize is pending."""
        self.outcome: PodOutcome | None = None
        known = (manifest.get("status") or {}).get("conditions") or ()
        self.conditions: dict[str, Manifest] = {each["type"]: each for each in known}
        """The conditions as they were last written."""
        self.has_volumes = False
        self.sandbox: Sandbox | None = None
        """The sandbox of its containers that are not simulated; None if all are."""
        self.is_stopping = False
        """Whether its containers were asked to end, because it is being deleted."""
        self.is_disrupted = False
        """Whether it was terminated by the node."""
        self._starts_at = starts_at

    @property
    def uid(self) -> str:
        """Its uid."""
        uid: str = self.manifest["metadata"]["uid"]
        return uid

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self.manifest["metadata"]["name"]
        return name

    @property
    def namespace(self) -> str:
        """Its namespace."""
        namespace: str = self.manifest["metadata"]["namespace"]
        return namespace

    @property
    def is_being_deleted(self) -> bool:
        """Whether it is being deleted."""
        return "deletionTimestamp" in self.manifest["metadata"]

    @property
    def grace_seconds(self) -> int:
        """Its grace period in seconds, if it is being deleted; 0 also means a forced deletion."""
        return self.manifest["metadata"].get("deletionGracePeriodSeconds") or 0

    @property
    def priority(self) -> int:
        """Its priority."""
        return self.manifest["spec"].get("priority") or 0

    @property
    def phase(self) -> str:
        """Its phase."""
        if self.outcome is not None:
            return self.outcome.phase
        phase = self._phase_without_sidecars
        if phase in FINISHED and any(isinstance(each.state, Running) for each in self.inits):
            return "Running"
        return phase

    @property
    def _phase_without_sidecars(self) -> str:
        if any(each.role is Role.INIT and each.ended and not each.is_ready for each in self.inits):
            return "Failed"
        if not all(each.has_begun for each in self.mains):
            return "Pending"
        codes = [each.ended.exit_code for each in self.mains if each.ended]
        if len(codes) < len(self.mains):
            return "Running"
        return "Failed" if any(codes) else "Succeeded"

    @property
    def is_finished(self) -> bool:
        """Whether it has succeeded or failed."""
        return self.phase in FINISHED

    @property
    def has_sandbox(self) -> bool:
        """Whether it has a sandbox."""
        return not self.is_finished and any(each.has_begun for each in self.containers)

    def usage(self, now: float) -> ContainerUsage:
        """The usage of all its containers."""
        total = NOTHING
        for each in self.containers:
            if isinstance(each.state, Running):
                total = total.plus(each.usage(now))
        return total

    @property
    def has_constant_usage(self) -> bool:
        """Whether its usage changes only when its containers start or end."""
        return all(each.workload.program.usage.is_constant for each in self.containers)

    # -- time

    @property
    def due(self) -> float | None:
        """When it changes by itself, if ever."""
        if self.is_finished:
            return None
        moments = [self._deadline]
        if self.has_volumes:
            moments += [each.due for each in self.containers]
        return min((moment for moment in moments if moment is not None), default=None)

    @property
    def _deadline(self) -> float | None:
        seconds = self.manifest["spec"].get("activeDeadlineSeconds")
        return None if seconds is None or self.started_at is None else self.started_at + seconds

    def step(self, now: float) -> bool:
        """Do what is due; returns whether anything was."""
        if self.is_finished:
            return False
        if (deadline := self._deadline) is not None and deadline <= now:
            grace_seconds = self.manifest["spec"].get("terminationGracePeriodSeconds") or 0
            self.kill(now, PodOutcome("Failed", "DeadlineExceeded", _DEADLINE), grace_seconds)
            return True
        changed = self.has_volumes and self._step_containers(now)
        if self.is_stopping:
            if not any(isinstance(each.state, Running) for each in self.containers):
                self.stop(now)
                return True
        elif self.has_volumes:
            self._begin_next(now)
        return changed

    def _step_containers(self, now: float) -> bool:
        changed = False
        for each in self.containers:
            changed |= each.step(now)
        if self.outcome is None and self._phase_without_sidecars in FINISHED:
            changed |= self._end_rest(now)
        return changed

    def _begin_next(self, now: float) -> None:
        """Start the next containers."""
        if self._phase_without_sidecars in FINISHED:
            return
        for each in self.inits:
            if not each.has_begun:
                self._begin([each], now)
            if not each.is_ready and not (each.role is Role.SIDECAR and each.has_begun):
                return
        if not any(each.has_begun for each in self.mains):
            self._begin(self.mains, now)

    def _begin(self, containers: Sequence[ContainerRun], now: float) -> None:
        if not any(each.is_to_start for each in containers):
            at = self._starts_at(self, containers, now)
            for each in containers:
                each.start_at = at

    def _end_rest(self, now: float) -> bool:
        """End sidecars, and containers that have not started; returns whether one has ended."""
        changed = False
        grace_seconds = self.manifest["spec"].get("terminationGracePeriodSeconds") or 0
        for each in self.containers:
            each.stop(now, grace_seconds, after_completion=True)
            changed |= each.step(now)
        return changed

    # -- ends

    def stop(self, now: float) -> None:
        """End all containers, because the pod is deleted."""
        for each in self.containers:
            each.abandon(now, STOPPED)
        if not self.is_finished:
            self.outcome = PodOutcome("Failed", "", "")

    def kill(self, now: float, outcome: PodOutcome, grace_seconds: float = 0.0) -> None:
        """End all containers, because the node requires it."""
        self.outcome = outcome
        for each in self.containers:
            each.abandon(now, KILLED, grace_seconds)

    def deletion_wanted(self, now: float) -> None:
        """Stop within the grace period; a shorter one may come later."""
        if self.is_finished:
            return
        self.is_stopping = True
        for each in self.containers:
            each.stop(now, self.grace_seconds)


def waiting_reason(run: PodRun, container: ContainerRun) -> Waiting:
    """Why a container that has not started waits: for init containers, or for its own creation."""
    assert isinstance(container.state, Waiting)
    if container.last is not None or container.state != CREATING:
        return container.state
    return Waiting("PodInitializing") if run.inits else CREATING
