"""What users read of the scheduler's work: events, in kube-scheduler's words."""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.services import events
from moorage.services.events import Broadcaster


class Recorder:
    """Tells of pods, each time as the profile that is responsible; never waits."""

    def __init__(self, broadcaster: Broadcaster) -> None:
        self._broadcaster = broadcaster
        self._recorders: dict[str, events.Recorder] = {}

    def scheduled(self, pod: Pod, node_name: str) -> None:
        """A pod has got its node."""
        self._as(pod).scheduled(pod, node_name)

    def preempted(self, victim: Pod, preemptor: Pod, node_name: str, *, in_memory: bool = False) -> None:
        """A pod had to go for another; `in_memory`: it was not yet bound, and is not deleted."""
        self._as(preemptor).preempted(victim, preemptor, node_name, in_memory=in_memory)

    def failed(self, pod: Pod, message: str) -> None:
        """A pod has got no node."""
        self._as(pod).failed(pod, message)

    def skipped(self, pod: Pod) -> None:
        """A pod is not tried because it is being deleted."""
        self._as(pod).failed(pod, f"skip schedule deleting pod: {pod.namespace}/{pod.name}")

    def _as(self, pod: Pod) -> events.Recorder:
        """Whoever reports for the profile that is responsible for a pod."""
        name = pod.spec.scheduler_name
        recorder = self._recorders.get(name)
        if recorder is None:
            recorder = self._recorders[name] = self._broadcaster.recorder(name)
        return recorder
