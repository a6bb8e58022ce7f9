"""What plugins see of a group of pods in its cycle: the group, placements, and assignments to nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from moorage.api.pod import Pod
from moorage.api.pod_groups import Group, GroupKey
from moorage.cluster.pod_groups import PodGroups
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.effects import Effect
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SUCCESS, Status

MEMBER_CYCLES: StateKey[dict[str, CycleState]] = StateKey("the cycles of a group's members")
"""In a group's cycle state: the latest cycle state of each member that was tried, by uid."""


@dataclass(frozen=True, slots=True, eq=False)
class PodGroupInfo:
    """A group in its cycle.

    key, group: its name, and the object. pods: the members to schedule, in order; none for composite groups.
    children: the parts of a composite group.
    """

    key: GroupKey
    group: Group
    pods: tuple[Pod, ...] = ()
    children: tuple[PodGroupInfo, ...] = ()

    @property
    def is_composite(self) -> bool:
        """Whether it consists of groups."""
        return self.key.is_composite

    @property
    def priority(self) -> int:
        """The group's priority; without one of its own, the lowest of its members to schedule.

        So no pod evicts another, or is tried before it, by the priority of a different member.
        """
        if self.group.is_native:
            return self.group.priority
        return min((pod.priority for pod in self.all_pods()), default=0)

    def all_pods(self) -> Iterator[Pod]:
        """The members to schedule, of all parts."""
        yield from self.pods
        for child in self.children:
            yield from child.all_pods()

    def leaves(self) -> Iterator[PodGroupInfo]:
        """The PodGroups of the hierarchy: a PodGroup is one itself."""
        if not self.is_composite:
            yield self
        for child in self.children:
            yield from child.leaves()


def group_info(
    groups: PodGroups, key: GroupKey, members: Callable[[GroupKey], Iterable[Pod]]
) -> PodGroupInfo | None:
    """A group with its members to schedule; None if it is not known.

    members: the members of a PodGroup to schedule, in order.
    """
    group = groups.get(key)
    if group is None:
        return None
    if not key.is_composite:
        return PodGroupInfo(key, group, tuple(members(key)))
    parts = (group_info(groups, child, members) for child in groups.children(key))
    return PodGroupInfo(key, group, (), tuple(part for part in parts if part is not None))


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Nodes among which all members of a group are to run; a topology domain, for example."""

    name: str
    nodes: Nodes


@dataclass(frozen=True, slots=True)
class PlacementProgress:
    """How far a group has come in a placement.

    scheduled: how many of its parts have nodes: members, those that ran before included, or child groups.
    remaining: how many have not been tried yet.
    """

    scheduled: int
    remaining: int


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """A member, and the node that it gets."""

    pod: Pod
    node_name: str
    cycle: CycleState


@dataclass(frozen=True, slots=True, eq=False)
class PlacementAssignments:
    """A placement that is feasible for a group, and the nodes that its members get there."""

    placement: Placement
    assignments: Sequence[Assignment]


@dataclass(frozen=True, slots=True)
class GroupSchedule:
    """The result of scheduling a group in a dry run."""

    status: Status
    assignments: Sequence[Assignment]


class GroupDryRun(Protocol):
    """What a PodGroupPostFilter plugin tries: the group in a cluster without some pods. It is all undone."""

    groups: PodGroups

    def nodes(self) -> Nodes:
        """All nodes, as they are now in the dry run."""

    def remove(self, pods: Iterable[Pod]) -> None:
        """Remove pods from their nodes."""

    def put_back(self, pods: Iterable[Pod]) -> None:
        """Put removed pods back."""

    async def schedule(self) -> GroupSchedule:
        """Schedule the group once more."""

    def fits(self, assignments: Sequence[Assignment]) -> bool:
        """Whether members still pass all filters on their nodes, each assumed there before the next."""

    def reprieve(self, units: Sequence[Sequence[Pod]], assignments: Sequence[Assignment]) -> Sequence[bool]:
        """Put units of removed pods back in turn, each if members still fit then; which of them are back."""


@dataclass(frozen=True, slots=True)
class PodGroupPostFilterResult:
    """The result of a PodGroupPostFilter plugin.

    status: SUCCESS if the group waits for room that is being made; its message is shown.
    nominated: the nodes that are being freed for members, by uid.
    effects: the effects to perform, in order; they may go on after the cycle has ended.
    done: to be called when the effects have been performed, or have failed.
    is_evaluated: whether victims were looked for.
    """

    status: Status = SUCCESS
    nominated: Mapping[str, str] = field(default_factory=dict)
    effects: tuple[Effect, ...] = ()
    done: Callable[[], None] = lambda: None
    is_evaluated: bool = False
