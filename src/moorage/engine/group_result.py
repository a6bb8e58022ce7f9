"""The result of a group's cycle: its status, and what became of each member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey
from moorage.engine.decision import Decision, refusal_at_a_node
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.effects import EvictPods
from moorage.framework.interface.pod_groups import (
    Assignment,
    Placement,
    PodGroupInfo,
    PodGroupPostFilterResult,
)
from moorage.framework.interface.status import Code, Status

UNSCHEDULABLE_GROUP = "pod group is unschedulable"


@dataclass(slots=True, eq=False)
class GroupStatus:
    """How the cycle of a group ended, with its reasons.

    Groups of a hierarchy may share one: a reason that is added to it counts for all of them.
    error: a text before all reasons, which stands for them where an error is quoted.
    """

    code: Code
    reasons: list[str] = field(default_factory=list)
    error: str = ""

    @classmethod
    def of(cls, status: Status) -> GroupStatus:
        """A plugin's status."""
        return cls(status.code, list(status.reasons))

    @classmethod
    def unschedulable(cls, *reasons: str) -> GroupStatus:
        """The group cannot be scheduled."""
        return cls(Code.UNSCHEDULABLE, list(reasons), UNSCHEDULABLE_GROUP)

    @classmethod
    def failed(cls, error: str) -> GroupStatus:
        """Something failed."""
        return cls(Code.ERROR, [], error)

    @classmethod
    def at_start(cls, verdict: Status) -> GroupStatus | None:
        """Why no member is tried, by a verdict on the placement; None: they are."""
        is_refusal = verdict.code is Code.UNSCHEDULABLE
        return cls.unschedulable(*verdict.reasons) if is_refusal else cls._of_error(verdict)

    @classmethod
    def after_member(cls, verdict: Status) -> GroupStatus | None:
        """Why no further member is tried; None: they are."""
        return cls.of(verdict) if verdict.code is Code.UNSCHEDULABLE else cls._of_error(verdict)

    @classmethod
    def at_end(cls, verdict: Status) -> GroupStatus:
        """What follows of the last verdict, if it let all members be tried."""
        return cls.unschedulable(*verdict.reasons) if verdict.code is Code.WAIT else cls.of(verdict)

    @classmethod
    def _of_error(cls, verdict: Status) -> GroupStatus | None:
        if verdict.code is not Code.ERROR:
            return None
        return cls.failed(f"failed to evaluate placement feasibility: {verdict.message}")

    @property
    def is_success(self) -> bool:
        """Whether enough members have nodes."""
        return self.code is Code.SUCCESS

    @property
    def is_error(self) -> bool:
        """Whether something failed."""
        return self.code is Code.ERROR

    @property
    def message(self) -> str:
        """All reasons in one line."""
        return ", ".join([self.error, *self.reasons] if self.error else self.reasons)

    @property
    def quoted(self) -> str:
        """The status as part of another one."""
        return self.error or self.message


@dataclass(slots=True, eq=False)
class MemberResult:
    """What became of one member.

    decision: None: it was not tried. status: why it has no node, if it has none.
    """

    pod: Pod
    cycle: CycleState
    decision: Decision | None = None
    node_name: str | None = None
    refusal: Status | None = None
    """The refusal of a reserve plugin at the chosen node."""
    untried_message: str = ""
    """Why a member was not tried."""
    seconds: float = 0.0
    """How long its attempt took."""

    @property
    def is_placed(self) -> bool:
        """Whether the member has a node."""
        return self.node_name is not None

    @property
    def error(self) -> str:
        """The error that ended the attempt; empty: none."""
        if self.refusal is not None and not self.refusal.refused:
            return self.refusal.message
        return "" if self.decision is None or self.decision.error is None else self.decision.message

    @property
    def message(self) -> str:
        """Why the member has no node."""
        if self.refusal is not None:
            return self.error or refusal_at_a_node(self.refusal)
        return self.untried_message if self.decision is None else self.decision.message

    @property
    def assignment(self) -> Assignment | None:
        """The node that the member gets."""
        return None if self.node_name is None else Assignment(self.pod, self.node_name, self.cycle)


@dataclass(slots=True, eq=False)
class GroupResult:
    """The result of one group of a hierarchy."""

    info: PodGroupInfo
    status: GroupStatus
    members: list[MemberResult] = field(default_factory=list)
    placement: Placement | None = None
    any_scheduled: bool = False
    """Whether a member got a node in this cycle."""
    is_waiting_on_preemption: bool = False

    @property
    def first_refused(self) -> MemberResult | None:
        """The first member that was tried and got no node."""
        tried = (member for member in self.members if member.decision is not None)
        return next((member for member in tried if not member.is_placed), None)

    @property
    def outcome(self) -> str:
        """How the cycle ended, in one word."""
        if self.status.is_success:
            return "Scheduled"
        if self.status.is_error:
            return "Error"
        return "WaitingOnPreemption" if self.is_waiting_on_preemption else "Unschedulable"

    @property
    def message(self) -> str:
        """The message of the group's condition."""
        return self.status.quoted if self.status.is_error else self.status.message

    @property
    def assignments(self) -> list[Assignment]:
        """The members that have nodes."""
        return [each for member in self.members if (each := member.assignment) is not None]


@dataclass(slots=True, eq=False)
class GroupDecision:
    """The result of a group's cycle.

    results: by group; with the root's children, if it has any.
    """

    root: PodGroupInfo
    results: dict[GroupKey, GroupResult]
    root_code: Code
    """How scheduling the root ended, before room was made."""
    post_filter: PodGroupPostFilterResult | None = None
    nominated: dict[str, str] = field(default_factory=dict)
    """The nodes that members are nominated to, by uid, if the group waits on preemption."""

    @property
    def result(self) -> GroupResult:
        """The root's result."""
        return self.results[self.root.key]

    @property
    def victims(self) -> list[Pod]:
        """The pods that are evicted for the group."""
        effects = () if self.post_filter is None else self.post_filter.effects
        return [victim for each in effects if isinstance(each, EvictPods) for victim in each.victims]

    def leaves(self) -> Sequence[GroupResult]:
        """The results of the PodGroups, in order."""
        return [self.results[leaf.key] for leaf in self.root.leaves()]


def member_message(result: GroupResult, member: MemberResult) -> str | None:
    """Why a member does not go on to binding, as in its condition; None if it does."""
    status = result.status
    if status.is_error:
        return member.error or status.message
    if not member.is_placed:
        return member.message
    if status.is_success:
        return None
    if result.is_waiting_on_preemption:
        return status.message
    return f"{UNSCHEDULABLE_GROUP}, {status.message}" if status.message else UNSCHEDULABLE_GROUP
