"""Pods of groups that are on no node: the members of a group are attempted together, in their own order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey, group_of
from moorage.framework.interface.pod_groups import PodGroupInfo, group_info
from moorage.sim.cluster import SimulatedCluster


@dataclass(slots=True, eq=False)
class _Member:
    """A pod without a node, and how often it was tried."""

    pod: Pod
    attempts: int = 0


class PendingGroups:
    """The pending members of the groups of a cluster, by namespace and name, in order of arrival."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._groups = cluster.cache.pod_groups
        self._members: dict[str, _Member] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def add(self, pod: Pod) -> None:
        """A pod of a group arrives; one of the same name takes the place of an earlier one."""
        earlier = self._members.get(pod.key)
        if earlier is not None:
            self._groups.remove(earlier.pod)
        self._groups.add(pod)
        self._members[pod.key] = _Member(pod)

    def discard(self, key: str) -> None:
        """A pod is pending no longer."""
        self._members.pop(key, None)

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Nominate a pending pod to a node; an empty name takes an earlier nomination back."""
        status = replace(pod.status, nominated_node_name=node_name)
        nominated = self._members[pod.key].pod = replace(pod, status=status)
        self._groups.add(nominated)
        self._cluster.cache.nominations.put(nominated, node_name)

    def roots(self) -> list[GroupKey]:
        """The roots of the groups with pending members, in order of arrival."""
        keys = (group_of(member.pod) for member in self._members.values())
        roots = (self._groups.root_of(key) for key in keys if key is not None)
        return list(dict.fromkeys(root for root in roots if root is not None))

    def pods(self, key: GroupKey) -> list[Pod]:
        """The pending pods of a PodGroup, in the order in which they are attempted."""
        members = [member for member in self._members.values() if group_of(member.pod) == key]
        members.sort(key=lambda each: (-each.pod.priority, -each.attempts))
        return [member.pod for member in members]

    def info(self, key: GroupKey) -> PodGroupInfo:
        """A group with its pending members."""
        info = group_info(self._groups, key, self.pods)
        assert info is not None, key
        return info

    def gate(self, group: PodGroupInfo) -> str:
        """Why a group does not enter the queue; empty if it does. One member is sufficient to keep it out."""
        return next(filter(None, map(self._cluster.gate, group.all_pods())), "")

    def begin_attempt(self, group: PodGroupInfo) -> None:
        """Count an attempt for all pending members of a group."""
        for pod in group.all_pods():
            self._members[pod.key].attempts += 1
