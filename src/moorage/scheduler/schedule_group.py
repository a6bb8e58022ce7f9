"""A group's attempt: one cycle for all its waiting members, and a binding cycle for each that gets a node.

Members that get no node are put back, and wait as a group for the next attempt. Groups' conditions are
written in the background.
"""

from __future__ import annotations

from collections.abc import Container
from random import Random
from typing import Final

from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey
from moorage.cluster.cache import Cache
from moorage.engine.group_choices import RandomChoices
from moorage.engine.group_cycle import GroupCycle
from moorage.engine.group_result import GroupDecision, GroupResult, MemberResult, member_message
from moorage.engine.group_validation import group_problem
from moorage.framework.interface.pod_groups import PodGroupInfo, group_info
from moorage.framework.interface.status import Code
from moorage.framework.runtime.framework import Framework
from moorage.klog import UNHANDLED, Logger, kobj
from moorage.queue.group_queue import GroupSchedulingQueue
from moorage.queue.queued_group import QueuedGroup
from moorage.queue.queued_pod import QueuedPod
from moorage.scheduler.attempts import Failure
from moorage.scheduler.background_tasks import BackgroundTasks
from moorage.scheduler.group_status_writer import GroupStatusWriter
from moorage.scheduler.observers import Observer
from moorage.scheduler.pod_events import PodEventRecorder
from moorage.scheduler.schedule_one import ScheduleOne

_NOT_PROCESSED: Final = "scheduling error for pod group, some pods were not processed"

log = Logger(__name__)


class ScheduleGroup:
    """Takes groups from the queue, and their members to their nodes.

    pods: binds members, and puts back those that are not bound.
    has_placements: whether groups have placements; otherwise all nodes are one.
    """

    def __init__(
        self,
        pods: ScheduleOne,
        cache: Cache,
        queue: GroupSchedulingQueue,
        random: Random,
        status_writer: GroupStatusWriter,
        recorder: PodEventRecorder,
        background: BackgroundTasks,
        observer: Observer,
        *,
        has_placements: bool,
    ) -> None:
        self._pods = pods
        self._cache = cache
        self._groups = cache.pod_groups
        self._queue = queue
        self._choices = RandomChoices(random)
        self._status_writer = status_writer
        self._recorder = recorder
        self._background = background
        self._observer = observer
        self._has_placements = has_placements

    async def attempt(self, queued: QueuedGroup) -> None:
        """Attempt to schedule a group; any exception fails this attempt only."""
        attempt = _Attempt(queued)
        self._observer.group_begins()
        try:
            await self._schedule(attempt)
            self._fail_unsettled(attempt, _NOT_PROCESSED)
        except Exception as error:
            log.exception(error, "Unexpected error in the scheduling cycle", podGroup=str(queued.key))
            self._fail_unsettled(attempt, str(error) or type(error).__name__)
        finally:
            self._queue.group_attempted(queued, scheduled=attempt.is_scheduled, failed=attempt.has_failed)

    def _fail_unsettled(self, attempt: _Attempt, message: str) -> None:
        """Put back the members that are neither bound nor put back yet."""
        attempt.has_failed |= bool(attempt.unsettled)
        for member in list(attempt.unsettled.values()):
            attempt.settle(member)
            self._pods.fail(member, _error(message))

    async def _schedule(self, attempt: _Attempt) -> None:
        queued = attempt.queued
        root = self._info(queued, attempt.unsettled)
        if root is None:
            self._refuse(attempt, None, f"pod group {queued.key} is not known")
            return
        problem = self._problem(root)
        if problem:
            self._refuse(attempt, root, problem)
            return
        for member in list(attempt.unsettled.values()):
            if self._pods.skips_pod(member.pod):
                attempt.settle(member)
                self._queue.done(member.uid)
        if not attempt.unsettled:
            attempt.is_scheduled = True
            return
        if len(attempt.unsettled) < len(queued.members):
            root = self._info(queued, attempt.unsettled) or root
        framework = self._pods.profiles.of(next(root.all_pods()))
        assert framework is not None
        log.info(3, "Attempting to schedule pod group", podGroup=str(queued.key))
        cycle = GroupCycle(
            self._pods.engine,
            framework,
            self._cache,
            self._observer.group_choices(self._choices),
            has_placements=self._has_placements,
            observer=self._observer,
        )
        decision = await cycle.decide(root)
        if self._pods.is_stopping and framework.handle.extenders:
            self._abandon(attempt, decision)
            return
        self._observer.group_decided(decision)
        self._submit(attempt, framework, decision)

    def _info(self, queued: QueuedGroup, waiting: Container[str]) -> PodGroupInfo | None:
        """A group with its waiting members, as plugins see it; None if it is not known any more.

        waiting: the uids of the members that are left.
        """
        members = [member.pod for member in queued.in_order() if member.uid in waiting]

        def members_of(key: GroupKey) -> list[Pod]:
            return [pod for pod in members if self._groups.group_of(pod) == key]

        return group_info(self._groups, queued.key, members_of)

    def _problem(self, root: PodGroupInfo) -> str:
        """Why a group cannot be scheduled as it is; empty if it can."""
        scheduled = self._groups.scheduled(root.key)
        problem = group_problem(root, scheduled, has_policy=self._groups.has_preemption_policy)
        pod = next(root.all_pods(), None)
        if not problem and pod is not None and self._pods.profiles.of(pod) is None:
            return f'profile not found for scheduler name "{pod.spec.scheduler_name}"'
        return problem

    def _refuse(self, attempt: _Attempt, root: PodGroupInfo | None, problem: str) -> None:
        """Fail a group before its cycle."""
        if root is not None:
            self._observer.group_refused(root, problem)
        self._fail_unsettled(attempt, problem)
        for leaf in root.leaves() if root is not None else ():
            self._write(leaf, "False", "SchedulerError", problem)

    def _abandon(self, attempt: _Attempt, decision: GroupDecision) -> None:
        """Discard a decision: the scheduler is stopping."""
        if decision.post_filter is not None:
            decision.post_filter.done()
        for uid in list(attempt.unsettled):
            self._queue.done(uid)
        attempt.unsettled.clear()
        attempt.is_scheduled = True

    # Results

    def _submit(self, attempt: _Attempt, framework: Framework, decision: GroupDecision) -> None:
        """Bind the members that have nodes, if enough have, and put back the others."""
        attempt.is_scheduled = decision.root_code is Code.SUCCESS
        attempt.has_failed = decision.root_code is Code.ERROR
        for result in decision.leaves():
            bound = 0
            for member in result.members:
                queued = attempt.settle_pod(member.pod)
                if queued is not None:
                    bound += self._submit_member(queued, framework, decision, result, member)
            self._conclude(result, bound)
        self._observer.group_ended(attempt.queued, decision)
        made = decision.post_filter
        if made is None:
            return
        if made.effects:
            self._background.start(self._pods.preempt(next(decision.root.all_pods()), made))
        else:
            made.done()

    def _submit_member(
        self,
        queued: QueuedPod,
        framework: Framework,
        decision: GroupDecision,
        result: GroupResult,
        member: MemberResult,
    ) -> bool:
        """Whether a member goes on to its binding cycle; otherwise it is put back."""
        self._observer.member_began(queued, member.seconds)
        message = member_message(result, member)
        if message is None:
            assert member.node_name is not None
            assert member.decision is not None
            return self._pods.bind(queued, framework, member.cycle, member.node_name, member.decision)
        self._pods.fail(queued, _failure(decision, result, member, message))
        return False

    def _conclude(self, result: GroupResult, bound: int) -> None:
        """Write a group's condition, and log how its attempt ended."""
        status, info = result.status, result.info
        left = len(result.members) - bound
        if status.is_success:
            message = "Successfully scheduled a pod group"
            log.info(2, message, podGroup=kobj(info.group), scheduledPods=bound, unschedulablePods=left)
            self._write(info, "True", "Scheduled", status.message)
        elif status.is_error:
            error = RuntimeError(status.quoted)
            message = "Error scheduling pod group"
            log.error(
                error, message, logger=UNHANDLED, podGroup=kobj(info.group), errorPods=len(result.members)
            )
            self._write(info, "False", "SchedulerError", status.quoted)
        else:
            waits = result.is_waiting_on_preemption
            message = "Pod group is waiting for preemption" if waits else "Unable to schedule a pod group"
            log.info(2, message, podGroup=kobj(info.group), unschedulablePods=left, err=status.message)
            self._write(info, "False", "Unschedulable", status.message)
            if (refused := result.first_refused) is not None:
                self._recorder.group_failed(info.group, refused.pod, status.message, refused.message)

    def _write(self, group: PodGroupInfo, status: str, reason: str, message: str) -> None:
        self._background.start(
            self._status_writer.initially_scheduled(group.key, status, reason, message), is_awaited=False
        )


class _Attempt:
    """A group in its attempt, and which of its members are neither bound nor put back yet."""

    def __init__(self, queued: QueuedGroup) -> None:
        self.queued = queued
        self.unsettled = dict(queued.members)
        self.is_scheduled = False
        self.has_failed = False

    def settle(self, member: QueuedPod) -> None:
        """A member is bound, put back or dropped."""
        del self.unsettled[member.uid]

    def settle_pod(self, pod: Pod) -> QueuedPod | None:
        """The waiting member for a pod, which is about to be bound or put back."""
        return self.unsettled.pop(pod.uid, None)


def _error(message: str) -> Failure:
    return Failure("SchedulerError", message, nominated="")


def _failure(decision: GroupDecision, result: GroupResult, member: MemberResult, message: str) -> Failure:
    """Why a member is not bound."""
    if result.status.is_error:
        return _error(message)
    nominated = decision.nominated.get(member.pod.uid, "")
    if member.is_placed or member.decision is None:
        return Failure("Unschedulable", message, nominated, of_group=True)
    diagnosis = member.decision.diagnosis
    plugins, pending = diagnosis.plugins, diagnosis.pending_plugins
    return Failure("Unschedulable", message, nominated, plugins, pending)
