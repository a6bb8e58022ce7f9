"""The interface between a kubelet and its container runtime: workloads of containers, and their reports.

The reports of a simulated workload are known in advance; a process reports what has happened to it. A
container polls either for its next report, and is woken if the time of that is not known in advance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from moorage.api.manifests import Manifest
from moorage_cluster.nodes.simulated_program import Program


@dataclass(frozen=True, slots=True)
class Started:
    """The container is running."""

    at: float
    is_started: bool = True
    """False as long as its startup probe has not passed."""


@dataclass(frozen=True, slots=True)
class StartDelayed:
    """The container cannot be created yet; the workload tries again."""

    at: float
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Probed:
    """Whether the startup probe has passed, and whether the container is ready."""

    at: float
    is_started: bool
    is_ready: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """The container has ended, or could not be started at all."""

    at: float
    exit_code: int
    reason: str
    message: str = ""


Report = Started | StartDelayed | Probed | Ended


class Workload(Protocol):
    """What runs in one container, one start after another."""

    program: Program
    """The usage of the container; of a simulated one also its behaviour."""
    is_simulated: ClassVar[bool]
    """Whether it is simulated, with its image; only simulated workloads outlive their kubelet."""

    def start(self, now: float) -> None:
        """Start; it reports when it has started."""

    def adopt(self, since: float, *, is_ready: bool) -> bool:
        """Continue what another kubelet started; False if that no longer runs."""

    @property
    def due(self) -> float | None:
        """The moment of the next report, where it is known in advance."""

    def next_report(self, now: float) -> Report | None:
        """The oldest report up to now that has not been read yet."""

    def stop(self, now: float, grace_seconds: float, *, after_completion: bool = False) -> None:
        """End within the grace period, and report it; a shorter period may follow.

        after_completion: the pod's main containers have completed, and it has nothing left to serve.
        """

    def discard(self, grace_seconds: float) -> None:
        """End within the grace period without any further report."""


class Host(NamedTuple):
    """The node's properties that pods can read."""

    name: str
    address: str
    allocatable: Mapping[str, str]


RecordEvent = Callable[[str, str, str], None]
"""Records an event about a pod: type, reason, message."""


class Sandbox(Protocol):
    """The sandbox of a pod's containers that are not simulated: its volumes and its network."""

    address: str
    """The pod's address."""

    @property
    def is_ready(self) -> bool:
        """Whether containers can start."""

    def prepare(self) -> None:
        """Begin to set everything up, unless that is under way."""

    def update(self, pod: Manifest) -> None:
        """The pod has changed."""

    def workload(self, container: Manifest, program: Program, *, has_readiness: bool) -> Workload | None:
        """What runs in a container; None if it is simulated."""

    def close(self) -> None:
        """End what still runs, and remove everything."""


class ContainerRuntime(Protocol):
    """Runs the containers of a cluster that are not simulated."""

    def sandbox(
        self, pod: Manifest, host: Host, wake: Callable[[], None], record_event: RecordEvent
    ) -> Sandbox | None:
        """The sandbox of a pod, which wakes its kubelet with every report; None if all is simulated."""
