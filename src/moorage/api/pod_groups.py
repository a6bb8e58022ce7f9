"""Groups of pods that are scheduled together: PodGroup, and CompositePodGroup, a group of groups."""

from __future__ import annotations

from typing import Final, NamedTuple

from moorage.api.base import Condition, Object, Struct
from moorage.api.pod import Pod

PREEMPT_LOWER_PRIORITY: Final = "PreemptLowerPriority"
PREEMPT_NEVER: Final = "Never"

INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
"""The condition that is True from the first time on that enough members of a group have nodes."""


class BasicPolicy(Struct):
    """Members are scheduled together as far as they fit."""


class GangPolicy(Struct):
    """All or nothing: at least this many pods, or, of a composite group, this many groups at once."""

    min_count: int = 1
    min_group_count: int = 1


class SchedulingPolicy(Struct):
    """How a group is scheduled: one of the two."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Struct):
    """All pods on nodes with one value of a label."""

    key: str = ""


class SchedulingConstraints(Struct):
    """Constraints on where a group runs."""

    topology: tuple[TopologyConstraint, ...] = ()


class WholeGroup(Struct):
    """A disruption mode has no settings."""


class DisruptionMode(Struct):
    """What may be evicted of a group: single pods, or all of them at once."""

    single: WholeGroup | None = None
    all: WholeGroup | None = None


class GroupSpec(Struct):
    """What both kinds of groups have in common."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    parent_composite_pod_group_name: str | None = None


class CoschedulingSpec(Struct):
    """What scheduler-plugins' kind of PodGroups says.

    min_resources: quantities as they are written; None if the field is missing, which differs from empty.
    """

    min_member: int = 0
    min_resources: dict[str, str | int] | None = None
    schedule_timeout_seconds: int | None = None


class PodGroupStatus(Struct):
    """The status of a group."""

    conditions: tuple[Condition, ...] = ()


class Group(Object):
    """A PodGroup or a CompositePodGroup."""

    spec: GroupSpec = GroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def priority(self) -> int:
        """The group's priority."""
        return self.spec.priority or 0

    @property
    def is_native(self) -> bool:
        """Whether the group is of Kubernetes' own kind, with a priority and conditions."""
        return True

    @property
    def preemption_policy(self) -> str:
        """Whether the group may preempt others."""
        return self.spec.preemption_policy or PREEMPT_LOWER_PRIORITY

    @property
    def parent(self) -> str:
        """The name of the composite group that this one is a part of; empty: none."""
        return self.spec.parent_composite_pod_group_name or ""

    @property
    def topology_key(self) -> str:
        """The label whose value all pods of the group have in common; empty: none."""
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else ""

    @property
    def is_evicted_whole(self) -> bool:
        """Whether all pods of the group are evicted if one is."""
        mode = self.spec.disruption_mode
        return mode is not None and mode.all is not None

    @property
    def quorum(self) -> int:
        """How many parts must be scheduled at once: 1 for the basic policy."""
        raise NotImplementedError

    def condition(self, kind: str) -> Condition | None:
        """A condition by its type."""
        return next((each for each in self.status.conditions if each.type == kind), None)


class PodGroup(Group):
    """Pods that are scheduled together.

    coscheduling: what the group says if it is of scheduler-plugins' kind; None if it is of Kubernetes' own.
    """

    coscheduling: CoschedulingSpec | None = None

    @property
    def is_native(self) -> bool:
        """Whether the group is of Kubernetes' own kind; otherwise the priority of its pods counts."""
        return self.coscheduling is None

    @property
    def quorum(self) -> int:
        """How many pods must be scheduled at once: 1 for the basic policy."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else gang.min_count


class CompositePodGroup(Group):
    """Groups that are scheduled together."""

    @property
    def quorum(self) -> int:
        """How many groups must be scheduled at once: 1 for the basic policy."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else gang.min_group_count


class GroupKey(NamedTuple):
    """A group's namespace and name, and of which of the two kinds it is."""

    namespace: str
    name: str
    is_composite: bool = False

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def group_of(pod: Pod) -> GroupKey | None:
    """The PodGroup that a pod names."""
    group = pod.spec.scheduling_group
    return (
        None if group is None or not group.pod_group_name else GroupKey(pod.namespace, group.pod_group_name)
    )


def key_of(group: Group) -> GroupKey:
    """The key of a group."""
    return GroupKey(group.namespace, group.name, isinstance(group, CompositePodGroup))
