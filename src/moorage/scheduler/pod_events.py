"""Events about pods, worded as kube-scheduler's."""

from __future__ import annotations

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.api.pod_groups import Group
from moorage.client.declared_kinds import kind_of_object
from moorage.framework.interface.effects import EvictPods
from moorage.services import event_broadcaster as events
from moorage.services.event_broadcaster import Broadcaster
from moorage.services.event_series import Reference


class PodEventRecorder:
    """Records events about pods, reported by each pod's profile; never blocks."""

    def __init__(self, broadcaster: Broadcaster) -> None:
        self._broadcaster = broadcaster
        self._recorders: dict[str, events.Recorder] = {}

    def scheduled(self, pod: Pod, node_name: str) -> None:
        """A pod was bound."""
        self._of(pod.spec.scheduler_name).scheduled(pod, node_name)

    def preempted(self, victim: Pod, eviction: EvictPods, *, in_memory: bool = False) -> None:
        """A pod was preempted; `in_memory`: it was not bound yet, and is not deleted."""
        pod, group = eviction.preemptor, eviction.group
        preemptor = Reference.to_pod(pod) if group is None else _reference(group)
        self._as(pod).preempted(
            victim, preemptor, eviction.preemptor_type, eviction.node_name, in_memory=in_memory
        )

    def failed(self, pod: Pod, message: str) -> None:
        """A pod was not scheduled."""
        self._as(pod).failed(pod, message)

    def skipped(self, pod: Pod) -> None:
        """A pod is skipped because it is being deleted."""
        self._as(pod).failed(pod, f"skip schedule deleting pod: {pod.namespace}/{pod.name}")

    def group_ignored(self, about: Object, pod: Pod, group: str) -> None:
        """A pod is scheduled by itself although it belongs to a group; about: the pod, or the group."""
        note = (
            f"Pod group {group} is ignored: its pods are scheduled one by one, "
            "because the feature gate GenericWorkload is off"
        )
        self._as(pod).event(_reference(about), None, "Warning", "PodGroupIgnored", "Scheduling", note)

    def group_failed(self, group: Group, member: Pod, message: str, reason: str) -> None:
        """A group was not scheduled; which of its pods got no node first, and why."""
        note = f"{message}; {member.namespace}/{member.name}: {reason}"
        self._as(member).event(
            _reference(group), Reference.to_pod(member), "Warning", "FailedScheduling", "Scheduling", note
        )

    def event(
        self,
        profile: str,
        about: Object,
        related: Object | None,
        type: str,
        reason: str,
        action: str,
        note: str,
    ) -> None:
        """An event that a plugin of a profile reports."""
        other = None if related is None else _reference(related)
        self._of(profile).event(_reference(about), other, type, reason, action, note)

    def _as(self, pod: Pod) -> events.Recorder:
        """The recorder of a pod's profile."""
        return self._of(pod.spec.scheduler_name)

    def _of(self, profile: str) -> events.Recorder:
        recorder = self._recorders.get(profile)
        if recorder is None:
            recorder = self._recorders[profile] = self._broadcaster.recorder(profile)
        return recorder


def _reference(obj: Object) -> Reference:
    """An object reference for events; items of a list do not say their kind, which is then their type's."""
    meta = obj.metadata
    kind = kind_of_object(obj)
    api_version, name = obj.api_version, obj.kind
    if kind is not None and not (api_version and name):
        api_version, name = kind.api_version, kind.name
    return Reference(api_version, name, meta.namespace, meta.name, meta.uid, meta.resource_version)
