"""One pod's attempt: the scheduling cycle, and the binding cycle in the background.

A pod is assumed on its node from the end of its scheduling cycle until the API server confirms it or the
binding fails; then everything is unreserved, and pods that the free resources may help are requeued.
"""

from __future__ import annotations

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.client.informer import Informer
from moorage.clock import Clock
from moorage.cluster.cache import Cache
from moorage.cluster.pod_table import PodInfo
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.framework.extenders.extenders import ExtenderError
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.effects import EvictPods
from moorage.framework.interface.extension_points import PostFilterResult
from moorage.framework.interface.pod_groups import PodGroupPostFilterResult
from moorage.framework.interface.status import Code, PluginError, Status
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.profiles import Profiles
from moorage.framework.runtime.waiting_pods import WaitingPods
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.klog import UNHANDLED, Logger, kobj
from moorage.queue import cluster_events as events
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.scheduling_queue import Place, SchedulingQueue
from moorage.scheduler.api_effects import ApiEffects
from moorage.scheduler.attempt_log import (
    log_assigned,
    log_failure,
    log_flushed,
    log_not_bound,
    log_not_requeued,
    log_permit,
    log_plugin_failure,
    log_rejection,
)
from moorage.scheduler.attempts import (
    Attempt,
    Failure,
    failure_at_a_node,
    failure_of_decision,
    failure_to_bind,
)
from moorage.scheduler.background_tasks import BackgroundTasks
from moorage.scheduler.observers import Observer
from moorage.scheduler.pod_events import PodEventRecorder
from moorage.scheduler.pod_groups import PodGroupWarnings
from moorage.scheduler.pod_status_writer import PodStatusWriter

log = Logger(__name__)


class ScheduleOne:
    """Takes pods from the queue to their nodes.

    profiles, engine: those in force; they can be replaced between two cycles.
    pods: the pods' informer.
    """

    def __init__(
        self,
        profiles: Profiles,
        engine: Engine,
        cache: Cache,
        queue: SchedulingQueue,
        pods: Informer[Object],
        clock: Clock,
        effects: ApiEffects,
        status_writer: PodStatusWriter,
        recorder: PodEventRecorder,
        group_warnings: PodGroupWarnings,
        waiting: WaitingPods,
        background: BackgroundTasks,
        observer: Observer,
    ) -> None:
        self.profiles = profiles
        self.engine = engine
        self.is_stopping = False
        """Whether no new work is started."""
        self._cache = cache
        self._queue = queue
        self._pods = pods
        self._clock = clock
        self._effects = effects
        self._status_writer = status_writer
        self._recorder = recorder
        self._group_warnings = group_warnings
        self._waiting = waiting
        self._background = background
        self._observer = observer

    async def attempt(self, queued: QueuedPod) -> None:
        """Attempt to schedule a pod; any exception fails this attempt only."""
        try:
            await self._schedule(queued)
        except Exception as error:
            log.exception(error, "Unexpected error in the scheduling cycle", pod=kobj(queued.pod))
            self.fail(queued, Failure("SchedulerError", str(error) or type(error).__name__, nominated=""))

    async def _schedule(self, queued: QueuedPod) -> None:
        pod = queued.pod
        if log.v >= 4:
            log.info(4, "About to try and schedule pod", pod=kobj(pod))
        framework = self.profiles.of(pod)
        if framework is None or self.skips_pod(pod):
            self._queue.done(pod.uid)
            return
        if pod.spec.scheduling_group is not None and queued.attempts == 1:
            self._group_warnings.warn(pod)
        if log.v >= 3:
            log.info(3, "Attempting to schedule pod", pod=kobj(pod))
        self._observer.begins(queued)
        cycle = CycleState()
        decision = await self.engine.decide_async(framework, pod, self._cache.snapshot(), cycle)
        if framework.handle.extenders and self._is_too_late(queued):
            self._abandon(queued, decision)
            return
        self._observer.decided(queued, decision)
        if decision.node is None:
            self._unschedulable(queued, decision, _class_info(pod, cycle))
            return
        self.bind(queued, framework, cycle, decision.node, decision)

    def bind(
        self, queued: QueuedPod, framework: Framework, cycle: CycleState, node_name: str, decision: Decision
    ) -> bool:
        """Assume a pod on its node and start its binding cycle; false: a plugin rejected it there."""
        attempt = Attempt(
            queued,
            self._assume(queued.pod, node_name, cycle),
            node_name,
            framework,
            cycle,
            decision.evaluated,
            len(decision.feasible),
        )
        status = self._reserve(attempt)
        if status.code not in (Code.SUCCESS, Code.WAIT):
            # The assumed pod was not visible to other pods, so no event is needed.
            self._undo(attempt, failure_at_a_node(status))
            return False
        self._activate(cycle)
        self._background.start(self._bind(attempt))
        return True

    def _assume(self, pod: Pod, node_name: str, cycle: CycleState) -> Pod:
        return self._cache.assume_pod(pod, node_name, _class_info(pod, cycle))

    def skips_pod(self, pod: Pod) -> bool:
        """Whether there is nothing to do for a pod: it is being deleted, or has its node."""
        if pod.metadata.deletion_timestamp:
            self._recorder.skipped(pod)
            log.info(3, "Skip schedule deleting pod", pod=kobj(pod))
            return True
        return self._cache.pod(pod.uid) is not None

    def _is_too_late(self, queued: QueuedPod) -> bool:
        """Whether a decision that had to wait for extenders no longer applies."""
        known = self._pods.get(queued.pod.namespace, queued.pod.name)
        if self.is_stopping or not isinstance(known, Pod) or known.uid != queued.uid:
            return True
        return self.skips_pod(known)

    def _abandon(self, queued: QueuedPod, decision: Decision) -> None:
        """Discard a decision."""
        self._observer.abandoned(queued)
        if decision.post_filter is not None:
            decision.post_filter.done()
        self._queue.done(queued.uid)

    def _reserve(self, attempt: Attempt) -> Status:
        """Run reserve and permit for an assumed pod."""
        framework, where = attempt.framework, (attempt.cycle, attempt.pod, attempt.node_name)
        try:
            point, status = "Reserve", framework.reserve(*where)
            if status.code is Code.SUCCESS:
                point, status = "Permit", framework.permit(*where)
        except PluginError as error:
            log_plugin_failure(error, attempt.pod, attempt.node_name)
            return Status(Code.ERROR, (str(error),), error.plugin)
        if log.v >= 4:
            log_rejection(point, status, attempt.pod, attempt.node_name)
        return status

    def _activate(self, cycle: CycleState) -> None:
        """Activate the pods that plugins requested."""
        if cycle.pods_to_activate:
            self._queue.activate(cycle.pods_to_activate.values())
            cycle.pods_to_activate.clear()

    def _unschedulable(self, queued: QueuedPod, decision: Decision, like: PodInfo | None) -> None:
        """No node: put the pod back, and start the preemption that post_filter prepared.

        like: an info of the pod's equivalence class, if there is one.
        """
        arranged = decision.post_filter
        if decision.error is not None:
            log.error(decision.error, "Error selecting node for pod", pod=kobj(queued.pod))
        self.fail(queued, failure_of_decision(decision), like)
        if arranged is not None and arranged.effects:
            self._background.start(self.preempt(queued.pod, arranged))
        elif arranged is not None:
            arranged.done()

    async def preempt(self, pod: Pod, arranged: PostFilterResult | PodGroupPostFilterResult) -> None:
        """Make room for a pod, or for its group."""
        failed, began = False, self._clock.now()
        try:
            for effect in arranged.effects:
                await self._effects.perform(effect)
        except (RequestError, ConnectionFailed) as error:
            failed = True
            log.error(error, "Error occurred during async preemption", logger=UNHANDLED, pod=kobj(pod))
        except Exception as error:
            failed = True
            log.exception(error, "Error occurred during async preemption", logger=UNHANDLED, pod=kobj(pod))
        for effect in arranged.effects:
            if isinstance(effect, EvictPods):
                self._observer.preempted(effect, not failed, self._clock.now() - began)
        arranged.done()
        # Until now the pod was gated by its own preemption; it must not miss the events meanwhile.
        if failed or self._queue.place_of(pod.uid) is Place.GATED:
            self._queue.activate([pod])

    def fail(self, queued: QueuedPod, failure: Failure, like: PodInfo | None = None) -> None:
        """Put a pod back into the queue and record why; one that is deleted or bound is dropped."""
        self._observer.failed(queued, failure.reason, failure.message)
        log_failure(queued.pod, failure)
        known = self._pods.get(queued.pod.namespace, queued.pod.name)
        if not isinstance(known, Pod) or known.uid != queued.uid:
            log_not_requeued(queued.pod, known)
            self._queue.done(queued.uid)
            return
        if known.spec.node_name:
            log_assigned(known)
            self._queue.done(queued.uid)  # Bound by another scheduler: an event, but no condition.
            self._recorder.failed(known, failure.message)
            return
        attempted = queued.pod
        self._queue.put_back(
            queued,
            known,
            unschedulable_plugins=failure.unschedulable_plugins,
            pending_plugins=failure.pending_plugins,
        )
        book = self._cache.nominations
        kept = book.node_of(known.uid) or known.status.nominated_node_name
        nominated_to = kept if failure.nominated is None else failure.nominated
        book.put(known, nominated_to, like if known is attempted else None)
        self._recorder.failed(known, failure.message)
        self._background.start(
            self._status_writer.not_scheduled(known, failure.reason, failure.message, failure.nominated),
            is_awaited=False,
        )

    # -- the binding cycle

    async def _bind(self, attempt: Attempt) -> None:
        queued, pod, framework = attempt.queued, attempt.pod, attempt.framework
        failure = await self._binding_cycle(attempt)
        if failure is not None:
            room = self._cache.is_assumed(pod)
            self._undo(attempt, failure)
            if room:
                self._queue.move_all(
                    events.ASSIGNED_POD_DELETE, pod, None, lambda other: other.uid != pod.uid
                )
            return
        if log.v >= 2:
            log.info(
                2,
                "Successfully bound pod to node",
                pod=kobj(pod),
                node=attempt.node_name,
                evaluatedNodes=attempt.evaluated,
                feasibleNodes=attempt.feasible,
            )
            if queued.was_flushed:
                log_flushed(queued)
        self._observer.bound(queued, self._clock.now())
        self._recorder.scheduled(pod, attempt.node_name)
        try:
            await framework.post_bind(attempt.cycle, pod, attempt.node_name)
        except PluginError as error:
            log_plugin_failure(error, pod, attempt.node_name)
        self._activate(attempt.cycle)

    async def _binding_cycle(self, attempt: Attempt) -> Failure | None:
        """The reason why a pod is not bound; None once it is bound."""
        pod, framework = attempt.pod, attempt.framework
        where, uid = (attempt.cycle, pod, attempt.node_name), attempt.queued.uid
        extenders = framework.handle.extenders
        try:
            is_held = self._waiting.get(uid) is not None
            if framework.pre_bind_pre_flight(*where) or is_held:
                # Binding may take a while: other components should know the node.
                await self._status_writer.nominate(attempt.queued.pod, attempt.node_name)
            if is_held:
                if log.v >= 4:
                    log.info(4, "Pod waiting on permit", pod=kobj(pod))
                status = await framework.wait_on_permit(pod)
                if status.code is not Code.SUCCESS:
                    log_permit(status, pod)
                    return failure_at_a_node(status)
            # From here on the pod can fail but not be rejected: it needs no in-flight events.
            self._queue.done(uid)
            point, status = "PreBind", await framework.pre_bind(*where)
            if status.code is Code.SUCCESS and not (extenders and await extenders.bind(*where[1:])):
                point, status = "Bind", await framework.bind(*where)
            if status.code is Code.SUCCESS:
                return None
            log_not_bound(point, status, pod, attempt.node_name)
            return failure_to_bind(status)
        except ExtenderError as error:
            log.info(1, "Failed to bind pod", pod=kobj(pod))
            return Failure("SchedulerError", str(error), nominated="")
        except (PluginError, RequestError, ConnectionFailed) as error:
            log_plugin_failure(error, pod, attempt.node_name)
            return Failure("SchedulerError", str(error), nominated="")
        except Exception as error:
            log.exception(error, "Unexpected error in the binding cycle", pod=kobj(pod))
            return Failure("SchedulerError", f"{type(error).__name__}: {error}", nominated="")

    def _undo(self, attempt: Attempt, failure: Failure) -> None:
        """Unreserve and forget a pod, and put it back into the queue."""
        pod = attempt.pod
        for problem in attempt.framework.unreserve(attempt.cycle, pod, attempt.node_name):
            log_plugin_failure(problem, pod, attempt.node_name)
        self._cache.forget_pod(pod)
        self.fail(attempt.queued, failure)


def _class_info(pod: Pod, cycle: CycleState) -> PodInfo | None:
    """The info that pods of the equivalence class share, if there is one."""
    return None if cycle.equivalence_class is None else cycle.equivalence_class.info(pod)
