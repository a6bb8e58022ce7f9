"""The decision about a group as rows: its placements with their scores, and what became of each member."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey
from moorage.engine.group_result import GroupDecision, GroupResult, MemberResult, member_message
from moorage.engine.placement_trials import MemberTrial, PlacementTrial
from moorage.explain.report import Report, report
from moorage.framework.interface.pod_groups import PodGroupInfo


@dataclass(frozen=True, slots=True)
class PlacementReport:
    """A placement that was tried."""

    name: str
    nodes: int
    feasible: bool
    chosen: bool
    message: str = ""
    scores: dict[str, int] | None = None
    total: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, without fields that do not apply."""
        facts = {
            "placement": self.name,
            "nodes": self.nodes,
            "feasible": self.feasible,
            "chosen": self.chosen,
            "message": self.message,
            "scores": self.scores,
            "total": self.total,
        }
        return {key: value for key, value in facts.items() if value not in ("", None)}


@dataclass(frozen=True, slots=True)
class MemberReport(Report):
    """A readable decision about a member of a group.

    found: the node that was found for it, whatever became of the group; empty: none.
    """

    is_tried: bool = False
    found: str = ""

    @property
    def is_unfit(self) -> bool:
        """Whether no node was found for the member, or the one that was found did not take it."""
        return self.is_tried and not self.node and not self.found

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**Report.as_dict(self), "tried": self.is_tried, "found": self.found or None}


@dataclass(frozen=True, slots=True)
class GroupReport:
    """A readable decision about a group.

    outcome: Scheduled, Unschedulable, WaitingOnPreemption or Error; Gated or Incomplete if it was not tried.
    message: that of the group's condition, or why it was not tried.
    cycle: 1, or more for what was left of a group when it was scheduled.
    """

    group: str
    kind: str
    outcome: str
    message: str = ""
    placements: tuple[PlacementReport, ...] = ()
    members: tuple[MemberReport, ...] = ()
    children: tuple[GroupReport, ...] = ()
    victims: tuple[str, ...] = ()
    """The pods that preemption would evict for the group."""
    cycle: int = 1

    @property
    def is_scheduled(self) -> bool:
        """Whether enough members have nodes."""
        return self.outcome == "Scheduled"

    @property
    def chosen(self) -> PlacementReport | None:
        """The placement that was chosen."""
        return next((each for each in self.placements if each.chosen), None)

    def all_members(self) -> Iterator[MemberReport]:
        """The members of the group and of its parts."""
        yield from self.members
        for child in self.children:
            yield from child.all_members()

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        facts: dict[str, Any] = {
            "group": self.group,
            "kind": self.kind,
            "cycle": self.cycle,
            "scheduled": self.is_scheduled,
            "outcome": self.outcome,
            "message": self.message,
        }
        if self.chosen is not None:
            facts["placement"] = self.chosen.name
        if self.victims:
            facts["victims"] = list(self.victims)
        return {
            **facts,
            "placements": [each.as_dict() for each in self.placements],
            "members": [each.as_dict() for each in self.members],
            "groups": [each.as_dict() for each in self.children],
        }


def untried_group(key: GroupKey, outcome: str, message: str, pods: Sequence[Pod]) -> GroupReport:
    """The report of a group that is not scheduled as it is; what keeps it is the same for all its pods."""
    members = tuple(MemberReport(pod.key, None, message, (), 0) for pod in pods)
    return GroupReport(str(key), _kind(key), outcome, message, members=members)


def group_report(
    decision: GroupDecision,
    trials: Sequence[PlacementTrial],
    failed: Mapping[str, str],
    cycle: int = 1,
) -> GroupReport:
    """The report of a decision.

    trials: what was tried. failed: why members could not be bound, by uid.
    """
    made = _report(decision.root, decision, trials, failed)
    return replace(made, victims=tuple(victim.key for victim in decision.victims), cycle=cycle)


def _report(
    info: PodGroupInfo, decision: GroupDecision, trials: Sequence[PlacementTrial], failed: Mapping[str, str]
) -> GroupReport:
    result = decision.results[info.key]
    own = [trial for trial in trials if trial.group == info.key]
    # Without a feasible placement, results are those of the first.
    shown = next((trial for trial in own if trial.is_chosen), own[0] if own else None)
    tried = {} if shown is None else shown.members
    inner = () if shown is None else shown.inner
    return GroupReport(
        str(info.key),
        _kind(info.key),
        result.outcome,
        result.message,
        tuple(map(_placement, own)),
        tuple(_member(result, member, tried, decision.nominated, failed) for member in result.members),
        tuple(_report(child, decision, inner, failed) for child in info.children),
    )


def _kind(key: GroupKey) -> str:
    return "CompositePodGroup" if key.is_composite else "PodGroup"


def _placement(trial: PlacementTrial) -> PlacementReport:
    placement = trial.placement
    return PlacementReport(
        placement.name,
        len(placement.nodes),
        trial.is_feasible,
        trial.is_chosen,
        "" if trial.is_feasible else trial.message,
        trial.scores,
        trial.total,
    )


def _member(
    result: GroupResult,
    member: MemberResult,
    tried: Mapping[str, MemberTrial],
    nominated: Mapping[str, str],
    failed: Mapping[str, str],
) -> MemberReport:
    uid = member.pod.uid
    message = failed.get(uid) or member_message(result, member)
    made = report(tried[uid].decision) if member.decision is not None and uid in tried else None
    return MemberReport(
        member.pod.key,
        member.node_name if message is None else None,
        message or "",
        () if made is None else made.nodes,
        0 if made is None else made.tied,
        nominated.get(uid),
        is_tried=member.decision is not None,
        found="" if uid in failed else member.node_name or "",
    )
