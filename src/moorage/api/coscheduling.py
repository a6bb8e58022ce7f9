"""PodGroups of scheduler-plugins (`scheduling.x-k8s.io`), which pods name with a label.

They are read as groups of Kubernetes' own kind: a gang of `minMember` pods.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.pod import Pod, PodSchedulingGroup, PodSpec
from moorage.api.pod_groups import CoschedulingSpec, GangPolicy, GroupSpec, PodGroup, SchedulingPolicy

API_VERSION: Final = "scheduling.x-k8s.io/v1alpha1"
POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
"""On a pod: the name of its group, in its namespace."""


class CoschedulingPodGroup(Object):
    """A PodGroup as the API server sends it."""

    spec: CoschedulingSpec = CoschedulingSpec()

    def as_pod_group(self) -> PodGroup:
        """The group in the form that scheduling reads."""
        gang = GangPolicy(min_count=self.spec.min_member)
        return PodGroup(
            api_version=API_VERSION,
            kind="PodGroup",
            metadata=self.metadata,
            spec=GroupSpec(scheduling_policy=SchedulingPolicy(gang=gang)),
            coscheduling=self.spec,
        )


def in_group(spec: PodSpec, name: str) -> PodSpec:
    """The spec of a pod that belongs to a group; to none, if the name is empty."""
    return replace(spec, scheduling_group=PodSchedulingGroup(pod_group_name=name) if name else None)


def with_labelled_group(pod: Pod) -> Pod:
    """A pod that belongs to the group that its label names, and to no other."""
    name = pod.labels.get(POD_GROUP_LABEL, "")
    is_without = not name and pod.spec.scheduling_group is None
    return pod if is_without else replace(pod, spec=in_group(pod.spec, name))
