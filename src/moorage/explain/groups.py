"""A pod in a group: the group's state, and the members that fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey, group_of
from moorage.cluster.pod_groups import PodGroups
from moorage.engine.group_choices import RandomChoices
from moorage.engine.group_result import GroupResult, member_message
from moorage.framework.interface.pod_groups import PodGroupInfo, group_info
from moorage.sim.cluster import SimulatedCluster


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group without a node: the node that it would get, or why it gets none."""

    pod: str
    node: str | None
    message: str


@dataclass(frozen=True, slots=True)
class GroupState:
    """The PodGroup of a pod.

    needed: how many members must be scheduled at once. known, placed: how many there are, and are on nodes.
    is_scheduled: whether the group as a whole would be scheduled. message: why not.
    """

    name: str
    needed: int
    known: int
    placed: int
    is_scheduled: bool
    message: str
    members: Sequence[Member] = ()

    @property
    def failing(self) -> Member | None:
        """The first member that gets no node."""
        return next((each for each in self.members if each.node is None), None)


def group_state(cluster: SimulatedCluster, pod: Pod) -> GroupState | None:
    """The state of a pod's group, tried as a whole; None if the pod is in none, or groups do not count."""
    groups, key = cluster.cache.pod_groups, group_of(pod)
    if key is None or not groups.is_enabled:
        return None
    group, root = groups.get(key), groups.root_of(key)
    if group is None or root is None:
        return GroupState(str(key), 0, groups.known_count(key), 0, False, "there is no such PodGroup")
    state = (str(key), group.quorum, groups.known_count(key), groups.scheduled_count(key))
    gate = cluster.framework_of(pod).pre_enqueue(pod)
    if gate is not None:
        return GroupState(*state, False, gate.message)
    result = _decided(cluster, _info(groups, root), key)
    if result is None:
        return GroupState(*state, True, "")
    members = [
        Member(each.pod.key, each.node_name, member_message(result, each) or "") for each in result.members
    ]
    return GroupState(*state, result.status.is_success, result.status.message, members)


def _info(groups: PodGroups, root: GroupKey) -> PodGroupInfo:
    def members_of(key: GroupKey) -> list[Pod]:
        return sorted(groups.unscheduled(key), key=lambda each: -each.priority)

    info = group_info(groups, root, members_of)
    assert info is not None
    return info


def _decided(cluster: SimulatedCluster, root: PodGroupInfo, key: GroupKey) -> GroupResult | None:
    """The result of the pod's own group; None if all its members are on nodes."""
    if not any(True for _ in root.all_pods()):
        return None
    decision = cluster.decide_group(root, RandomChoices(Random(0)))
    if decision.post_filter is not None:
        decision.post_filter.done()
    return decision.results.get(key, decision.result)
