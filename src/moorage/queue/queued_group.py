"""A group of pods in the queue: one entry for all its members that wait."""

from __future__ import annotations

import msgspec

from moorage.api.pod_groups import GroupKey
from moorage.queue.queued_pod import QueuedPod


class QueuedGroup(QueuedPod):
    """The waiting pods of a group, or of a hierarchy of groups, which are scheduled together.

    pod: the member that stands for the group: the one that gates it, or the first.
    key: the root of the hierarchy, whose priority is the entry's.
    has_own_priority: whether the root has a priority; otherwise the lowest of its pods' is the entry's.
    members: the waiting pods, by uid.
    """

    key: GroupKey = GroupKey("", "")
    has_own_priority: bool = True
    members: dict[str, QueuedPod] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.uid = repr(self.key)

    def join(self, member: QueuedPod) -> None:
        """Add a member."""
        self.members[member.uid] = member
        if not self.has_own_priority:
            is_first = len(self.members) == 1
            self.priority = member.priority if is_first else min(self.priority, member.priority)

    @property
    def pod_count(self) -> int:
        """How many pods are scheduled together."""
        return len(self.members)

    @property
    def is_entity(self) -> bool:
        """Whether metrics count it as a group: composite groups are not counted, only their pods."""
        return not self.key.is_composite

    def in_order(self) -> list[QueuedPod]:
        """The members in the order in which they are tried."""
        return sorted(self.members.values(), key=_order_of_member)


def _order_of_member(member: QueuedPod) -> tuple[int, int, float, str]:
    return (-member.pod.priority, -member.attempts, member.timestamp, member.pod.name)
