"""What the pods of a group must have in common to be scheduled together."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.api.pod import Pod
from moorage.api.pod_groups import PREEMPT_LOWER_PRIORITY
from moorage.framework.interface.pod_groups import PodGroupInfo


def group_problem(root: PodGroupInfo, scheduled: Iterable[Pod], *, has_policy: bool) -> str:
    """Why a group cannot be scheduled as it is; empty if it can.

    scheduled: its pods that are on nodes. has_policy: whether groups have a preemption policy of their own.
    """
    scheduler_name = None
    policy = root.group.preemption_policy if has_policy else None
    for pod in (*root.all_pods(), *scheduled):
        own = pod.spec.scheduler_name
        scheduler_name = own if scheduler_name is None else scheduler_name
        if own != scheduler_name:
            return (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{own}" and "{scheduler_name}"'
            )
        if root.group.is_native and pod.priority != root.group.priority:
            return (
                "all pods in a single pod group should have the same priority as the pod group's priority, "
                f"got {pod.priority} and {root.group.priority}"
            )
        own = pod.spec.preemption_policy or PREEMPT_LOWER_PRIORITY
        policy = own if policy is None else policy
        if own != policy:
            whose = " as the pod group's preemption policy" if has_policy else ""
            return (
                f"all pods in a single pod group should have the same preemption policy{whose}, "
                f"got {own} and {policy}"
            )
    return ""
