"""One scheduling cycle for a group of pods: all that is needed of it gets nodes, or nothing does.

    placements of the group ─► in each: members in turn, each assumed before the next ─► scores ─► the best
    none is feasible        ─► pod_group_post_filter: room is made for the group as a whole

Members are assumed in the cache and forgotten again, so that each sees the ones before it through the columns
that single pods use; at the end nothing is left but the result. A composite group consists of groups: they
are scheduled in turn inside each of its placements, and the pods of one stay assumed for the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey
from moorage.cluster.cache import Cache
from moorage.engine.alike_members import AlikeMembers
from moorage.engine.assigned_members import AssignedMembers
from moorage.engine.assumed_members import AssumedMembers
from moorage.engine.engine import Engine
from moorage.engine.group_choices import GroupChoices
from moorage.engine.group_dry_run import DryRun
from moorage.engine.group_observer import GroupCycleObserver
from moorage.engine.group_result import (
    GroupDecision,
    GroupResult,
    GroupStatus,
    MemberResult,
)
from moorage.engine.rehearsal import Rehearsal
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import (
    MEMBER_CYCLES,
    Assignment,
    GroupSchedule,
    Placement,
    PlacementAssignments,
    PlacementProgress,
    PodGroupInfo,
    PodGroupPostFilterResult,
)
from moorage.framework.interface.status import SUCCESS, Code, PluginError, Status
from moorage.framework.runtime.framework import Framework
from moorage.klog import Logger, kobj

log = Logger(__name__)

_Results = dict[GroupKey, GroupResult]
_KnownNodes = Iterator[str | None] | None
"""The nodes of members in turn, if they are known from a rehearsal."""


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """A group that was tried in a placement.

    results: of the group, and of its parts. assignments: the members that got nodes, if it was a success.
    nodes: the nodes of members in turn, if it was a rehearsal; results are without members then.
    """

    placement: Placement
    results: _Results
    assignments: Sequence[Assignment]
    nodes: list[str | None] | None = None


class GroupCycle:
    """Schedules one group, or a hierarchy of groups.

    has_placements: whether groups have placements; otherwise all nodes are one.
    """

    def __init__(
        self,
        engine: Engine,
        framework: Framework,
        cache: Cache,
        choices: GroupChoices,
        *,
        has_placements: bool,
        observer: GroupCycleObserver | None = None,
    ) -> None:
        self._engine = engine
        self._framework = framework
        self._cache = cache
        self._groups = cache.pod_groups
        self._choices = choices
        self._has_placements = has_placements
        self._observer = observer or GroupCycleObserver()
        self._assumed = AssumedMembers(framework, cache)
        self._member_cycles: dict[str, CycleState] = {}

    async def decide(self, root: PodGroupInfo) -> GroupDecision:
        """The nodes of a group's members, or why it has none and what would make room."""
        cycle = CycleState()
        cycle.write(MEMBER_CYCLES, self._member_cycles)
        results = await self._schedule(root, cycle)
        decision = GroupDecision(root, results, results[root.key].status.code)
        _complete(root, results, None)
        self._observer.group_algorithm_ended()
        if decision.root_code is Code.UNSCHEDULABLE:
            await self._make_room(root, cycle, decision)
        return decision

    async def _make_room(self, root: PodGroupInfo, cycle: CycleState, decision: GroupDecision) -> None:
        assigned = partial(AssignedMembers, self._engine, self._framework, self._cache)
        dry_run = DryRun(self._cache, partial(self._schedule_again, root), assigned)
        try:
            made = await self._framework.pod_group_post_filter(cycle, root, dry_run)
        except PluginError as error:
            made = PodGroupPostFilterResult(Status(Code.ERROR, (str(error),), error.plugin))
        finally:
            dry_run.end()
        decision.post_filter = made
        if made.status.code is Code.SUCCESS:
            decision.nominated = dict(made.nominated)
        for result in decision.results.values():
            result.is_waiting_on_preemption = made.status.code is Code.SUCCESS
            if made.status.code is Code.ERROR:
                result.status = GroupStatus.failed(made.status.message)
            else:
                # Once for each group: those that share a status say it several times.
                result.status.reasons.append(made.status.message)

    # The algorithm

    async def _schedule(self, root: PodGroupInfo, cycle: CycleState) -> _Results:
        """Schedule a group; nothing is assumed afterwards."""
        results: _Results = {}
        mark = len(self._assumed)
        try:
            result = await self._group(root, Nodes(self._cache.snapshot()), cycle, results)
        finally:
            self._assumed.forget_from(mark)
        if result.status.is_success and not result.any_scheduled:
            result.status = GroupStatus.unschedulable()
        return results

    async def _group(
        self, group: PodGroupInfo, nodes: Nodes, cycle: CycleState, results: _Results
    ) -> GroupResult:
        """Schedule a group within some nodes; if it is a part of another, its members stay assumed."""
        if group.is_composite or self._has_placements:
            result = await self._in_best_placement(group, nodes, cycle, results)
        else:
            result = await self._in_placement(group, Placement("", nodes), {})
        results[group.key] = result
        return result

    async def _in_best_placement(
        self, group: PodGroupInfo, nodes: Nodes, cycle: CycleState, results: _Results
    ) -> GroupResult:
        """Try all placements of a group, and take the best."""
        cycle.is_sampled = True
        try:
            generated = self._framework.placement_generate(cycle, group, nodes)
        except PluginError as error:
            return GroupResult(group, GroupStatus.failed(str(error)))
        if isinstance(generated, Status):
            return GroupResult(group, GroupStatus.of(generated))
        if not group.is_composite:
            self._observer.placements_generated(self._framework.name, len(generated))
        rehearsal = self._rehearsal(group) if len(generated) > 1 else None
        first: _Trial | None = None
        feasible: list[_Trial] = []
        for placement in self._choices.placements(group, generated):
            if log.v >= 4:
                log.info(4, "Assuming placement in snapshot", placement=placement.name)
            began = perf_counter()
            if rehearsal is None:
                trial = await self._tried(group, placement)
            else:
                trial = self._rehearsed(group, placement, rehearsal)
            result = trial.results[group.key]
            if result.status.is_error:
                return result
            if not group.is_composite:
                self._observer.placement_evaluated(
                    self._framework.name,
                    is_feasible=result.status.is_success,
                    seconds=perf_counter() - began,
                )
            first = first or trial
            if result.status.is_success:
                feasible.append(trial)
        if feasible:
            return await self._take_best(group, cycle, feasible, results)
        assert first is not None
        subtree = await self._decided(group, first)
        result, status = subtree[group.key], subtree[group.key].status
        result.status = GroupStatus.unschedulable(
            f"0/{len(generated)} placements are available, first placement status: {status.quoted}"
        )
        results.update(subtree)
        return result

    def _rehearsal(self, group: PodGroupInfo) -> Rehearsal | None:
        """A rehearsal, if placements can be compared without the decisions about each member."""
        if group.is_composite or self._choices.reads_decisions or log.v >= 4:
            return None
        alike = AlikeMembers.of(self._engine, self._framework, self._cache.snapshot(), group.pods)
        if alike is None:
            return None
        return Rehearsal(self._framework, group, alike, self._groups.scheduled_count(group.key))

    async def _tried(self, group: PodGroupInfo, placement: Placement) -> _Trial:
        """A group tried in a placement."""
        subtree: _Results = {}
        mark = len(self._assumed)
        subtree[group.key] = await self._in_placement(group, placement, subtree)
        self._assumed.forget_from(mark)
        return _Trial(placement, subtree, _assignments(group, subtree))

    def _rehearsed(self, group: PodGroupInfo, placement: Placement, rehearsal: Rehearsal) -> _Trial:
        """The same without the decisions about its members."""
        self._choices.trying(group, placement)
        status, nodes = rehearsal.in_placement(placement)
        result = GroupResult(group, status, placement=placement)
        self._choices.tried(placement, result)
        assignments = rehearsal.assignments(nodes) if status.is_success else []
        return _Trial(placement, {group.key: result}, assignments, nodes)

    async def _decided(self, group: PodGroupInfo, trial: _Trial) -> _Results:
        """The results of a trial, with the decisions about members if it was a rehearsal."""
        if trial.nodes is None:
            return trial.results
        mark = len(self._assumed)
        result = await self._evaluated(group, trial.placement, {}, iter(trial.nodes))
        self._assumed.forget_from(mark)
        return {group.key: result}

    async def _take_best(
        self, group: PodGroupInfo, cycle: CycleState, feasible: Sequence[_Trial], results: _Results
    ) -> GroupResult:
        """Choose one of the feasible placements."""
        self._cache.snapshot()  # The nodes are scored without what was assumed.
        assigned = [PlacementAssignments(trial.placement, trial.assignments) for trial in feasible]
        try:
            scores = self._framework.placement_score(cycle, group, assigned) if len(feasible) > 1 else None
        except PluginError as error:
            return GroupResult(group, GroupStatus.failed(str(error)))
        best = await self._decided(group, feasible[self._choices.best(group, assigned, scores)])
        if self._groups.is_nested:
            # Other groups of the hierarchy see these pods.
            for each in _assignments(group, best):
                status = self._assumed.add(each)
                if status.code is not Code.SUCCESS:
                    return GroupResult(
                        group, GroupStatus.failed(f"failed to assume the subtree: {status.message}")
                    )
        results.update(best)
        return best[group.key]

    async def _in_placement(
        self, group: PodGroupInfo, placement: Placement, subtree: _Results
    ) -> GroupResult:
        """Schedule a group in a placement: its members, or child groups, in turn."""
        self._choices.trying(group, placement)
        result = await self._evaluated(group, placement, subtree)
        self._choices.tried(placement, result)
        return result

    async def _evaluated(
        self, group: PodGroupInfo, placement: Placement, subtree: _Results, nodes: _KnownNodes = None
    ) -> GroupResult:
        mark, cycle = len(self._assumed), CycleState()
        result = GroupResult(group, GroupStatus.unschedulable(), placement=placement)
        if group.is_composite:
            await self._children_in_turn(group, placement, cycle, result, subtree)
        else:
            await self._members_in_turn(group, placement, cycle, result, nodes)
        if not result.status.is_success:
            self._assumed.forget_from(mark)
            result.any_scheduled = False
        return result

    async def _members_in_turn(
        self,
        group: PodGroupInfo,
        placement: Placement,
        cycle: CycleState,
        result: GroupResult,
        nodes: _KnownNodes,
    ) -> None:
        if log.v >= 5:
            log.info(
                5,
                "Running a pod group scheduling algorithm",
                podGroup=kobj(group.group),
                unscheduledPodsCount=len(group.pods),
            )
        scheduled, remaining = self._groups.scheduled_count(group.key), len(group.pods)
        verdict = self._judge(group, cycle, scheduled, remaining)
        if status := GroupStatus.at_start(verdict):
            result.status = status
            return
        for pod in group.pods:
            member = await self._member(group, placement, pod, nodes)
            result.members.append(member)
            if member.error:
                result.status = GroupStatus.failed(
                    f"failed to schedule other pod from a pod group: {member.error}"
                )
                return
            remaining -= 1
            scheduled += member.is_placed
            verdict = self._judge(group, cycle, scheduled, remaining)
            if status := GroupStatus.after_member(verdict):
                result.status = status
                return
            result.any_scheduled |= member.is_placed
        result.status = GroupStatus.at_end(verdict)

    async def _children_in_turn(
        self,
        group: PodGroupInfo,
        placement: Placement,
        cycle: CycleState,
        result: GroupResult,
        subtree: _Results,
    ) -> None:
        scheduled, remaining = 0, len(group.children)
        verdict = self._judge(group, cycle, scheduled, remaining)
        result.status = GroupStatus.of(verdict)
        if verdict.code in (Code.UNSCHEDULABLE, Code.ERROR):
            return
        for child in self._choices.children(group):
            part = await self._group(child, placement.nodes, CycleState(), subtree)
            if part.status.is_error:
                result.status = GroupStatus.failed(
                    f"composite pod group evaluation failed due to child error: {part.status.quoted}"
                )
                return
            result.any_scheduled |= part.any_scheduled
            remaining -= 1
            scheduled += part.status.is_success
            verdict = self._judge(group, cycle, scheduled, remaining)
            result.status = GroupStatus.of(verdict)
            if verdict.code in (Code.UNSCHEDULABLE, Code.ERROR):
                return
        if verdict.code is Code.WAIT:
            result.status = GroupStatus.unschedulable(*verdict.reasons)

    def _judge(self, group: PodGroupInfo, cycle: CycleState, scheduled: int, remaining: int) -> Status:
        return self._framework.placement_feasible(cycle, group, PlacementProgress(scheduled, remaining))

    # Members

    async def _member(
        self, group: PodGroupInfo, placement: Placement, pod: Pod, nodes: _KnownNodes
    ) -> MemberResult:
        """Find a node for a member, and assume it there."""
        if log.v >= 4:
            message = "Attempting to schedule a pod belonging to a pod group"
            log.info(4, message, podGroup=kobj(group.group), pod=kobj(pod))
        began = perf_counter()
        cycle = self._member_cycles[pod.uid] = CycleState()
        decision = await self._engine.decide_async(
            self._framework, pod, self._cache.snapshot(), cycle, placement.nodes
        )
        node_name = self._choices.node(decision) if nodes is None else next(nodes)
        member = MemberResult(pod, cycle, decision, node_name)
        self._observer.member_tried(perf_counter() - began)
        if (assignment := member.assignment) is not None:
            status = self._assumed.add(assignment)
            if status.code is not Code.SUCCESS:
                member.node_name, member.refusal = None, status
        member.seconds = perf_counter() - began
        return member

    async def _schedule_again(self, root: PodGroupInfo) -> GroupSchedule:
        """Schedule a group in a dry run."""
        results = await self._schedule(root, CycleState())
        status = results[root.key].status
        return GroupSchedule(
            SUCCESS if status.is_success else Status(status.code, (status.message,)),
            _assignments(root, results) if status.is_success else (),
        )


def _assignments(group: PodGroupInfo, results: _Results) -> list[Assignment]:
    """The members with nodes of all parts that succeeded, under parents that succeeded."""
    result = results.get(group.key)
    if result is None or not result.status.is_success:
        return []
    below = [each for child in group.children for each in _assignments(child, results)]
    return [*below, *result.assignments]


def _complete(group: PodGroupInfo, results: _Results, parent: GroupResult | None) -> None:
    """Give every group and every member a result: what was not reached shares the status of its parent."""
    result = results.get(group.key)
    if result is None or (parent is not None and not parent.status.is_success and result.status.is_success):
        assert parent is not None
        result = results[group.key] = GroupResult(group, parent.status)
    for pod in group.pods[len(result.members) :]:
        result.members.append(MemberResult(pod, CycleState(), untried_message=result.status.message))
    for child in group.children:
        _complete(child, results, result)
