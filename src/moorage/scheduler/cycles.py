"""One pod's way to its node: the scheduling cycle, and the binding cycle beside the others.

A pod is assumed to be on its node from the end of its scheduling cycle until the API server confirms it or
the binding fails; then everything is taken back, and those whom the room may help are woken.
"""

from __future__ import annotations

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.client.errors import ConnectionFailed, RequestError
from moorage.client.informer import Informer
from moorage.clock import Clock
from moorage.cluster.cache import Cache
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.framework.extenders.extenders import ExtenderError
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.extension_points import PostFilterResult
from moorage.framework.interface.status import Code, PluginError, Status
from moorage.framework.runtime.profiles import Profiles
from moorage.framework.runtime.waiting_pods import WaitingPods
from moorage.klog import UNHANDLED, Logger, kobj
from moorage.queue import events
from moorage.queue.entry import QueuedPod
from moorage.queue.scheduling_queue import Place, SchedulingQueue
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
from moorage.scheduler.beside import Beside
from moorage.scheduler.effects import ApiEffects
from moorage.scheduler.events import Recorder
from moorage.scheduler.observers import Observer
from moorage.scheduler.pod_groups import PodGroupWarnings
from moorage.scheduler.statuses import PodStatuses

log = Logger(__name__)


class Cycles:
    """Takes pods from the queue to their nodes.

    profiles, engine: those in force; they can be changed between two cycles.
    pods: the pods as the API server shows them.
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
        statuses: PodStatuses,
        recorder: Recorder,
        waiting: WaitingPods,
        beside: Beside,
        observer: Observer,
    ) -> None:
        self.profiles = profiles
        self.engine = engine
        self.is_ending = False
        """Whether nothing is to be begun any more."""
        self._cache = cache
        self._queue = queue
        self._pods = pods
        self._clock = clock
        self._effects = effects
        self._statuses = statuses
        self._recorder = recorder
        self._group_warnings = PodGroupWarnings(recorder)
        self._waiting = waiting
        self._beside = beside
        self._observer = observer

    async def attempt(self, queued: QueuedPod) -> None:
        """Try a pod; whatever goes wrong is that pod's misfortune, not the scheduler's."""
        try:
            await self._schedule(queued)
        except Exception as error:
            log.exception(error, "Unexpected error in the scheduling cycle", pod=kobj(queued.pod))
            self._fail(queued, Failure("SchedulerError", str(error) or type(error).__name__, nominated=""))

    async def _schedule(self, queued: QueuedPod) -> None:
        pod = queued.pod
        if log.v >= 4:
            log.info(4, "About to try and schedule pod", pod=kobj(pod))
        framework = self.profiles.of(pod)
        if framework is None or self._is_to_be_skipped(pod):
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
            self._let_go(queued, decision)
            return
        self._observer.decided(queued, decision)
        if decision.node is None:
            self._refused(queued, decision)
            return
        attempt = Attempt(
            queued,
            self._assume(pod, decision.node, cycle),
            decision.node,
            framework,
            cycle,
            decision.evaluated,
            len(decision.feasible),
        )
        status = self._reserve(attempt)
        if status.code not in (Code.SUCCESS, Code.WAIT):
            # Nobody has seen the room taken, so nobody is to be told that it is free again.
            self._take_back(attempt, failure_at_a_node(status))
            return
        self._activate(cycle)
        self._beside.start(self._bind(attempt))

    def _assume(self, pod: Pod, node_name: str, cycle: CycleState) -> Pod:
        like = None if cycle.equivalence_class is None else cycle.equivalence_class.info(pod)
        return self._cache.assume_pod(pod, node_name, like)

    def _is_to_be_skipped(self, pod: Pod) -> bool:
        """Whether there is nothing to do for a pod: it goes, or it has its node."""
        if pod.metadata.deletion_timestamp:
            self._recorder.skipped(pod)
            log.info(3, "Skip schedule deleting pod", pod=kobj(pod))
            return True
        return self._cache.pod(pod.uid) is not None

    def _is_too_late(self, queued: QueuedPod) -> bool:
        """Whether nothing is to come of a decision any more that has taken its time."""
        known = self._pods.get(queued.pod.namespace, queued.pod.name)
        if self.is_ending or not isinstance(known, Pod) or known.uid != queued.uid:
            return True
        return self._is_to_be_skipped(known)

    def _let_go(self, queued: QueuedPod, decision: Decision) -> None:
        """Have nothing come of a decision."""
        self._observer.let_go(queued)
        if decision.post_filter is not None:
            decision.post_filter.done()
        self._queue.done(queued.uid)

    def _reserve(self, attempt: Attempt) -> Status:
        """Reserve what an assumed pod needs, and ask whether it may go on."""
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
        """Let the pods be tried that plugins want to be tried."""
        if cycle.pods_to_activate:
            self._queue.activate(cycle.pods_to_activate.values())
            cycle.pods_to_activate.clear()

    def _refused(self, queued: QueuedPod, decision: Decision) -> None:
        """No node: the pod waits for what may help it, and what was arranged to make room is set going."""
        arranged = decision.post_filter
        if decision.error is not None:
            log.error(decision.error, "Error selecting node for pod", pod=kobj(queued.pod))
        self._fail(queued, failure_of_decision(decision))
        if arranged is not None and arranged.effects:
            self._beside.start(self._make_room(queued.pod, arranged))
        elif arranged is not None:
            arranged.done()

    async def _make_room(self, pod: Pod, arranged: PostFilterResult) -> None:
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
        self._observer.made_room(not failed, self._clock.now() - began)
        arranged.done()
        # Until now the pod was kept from being tried; what happened meanwhile must not be lost on it.
        if failed or self._queue.place_of(pod.uid) is Place.GATED:
            self._queue.activate([pod])

    def _fail(self, queued: QueuedPod, failure: Failure) -> None:
        """Put a pod back into the queue as it is now, and say why; one that is gone or bound is let go."""
        self._observer.failed(queued, failure.reason)
        log_failure(queued.pod, failure)
        known = self._pods.get(queued.pod.namespace, queued.pod.name)
        if not isinstance(known, Pod) or known.uid != queued.uid:
            log_not_requeued(queued.pod, known)
            self._queue.done(queued.uid)
            return
        if known.spec.node_name:
            log_assigned(known)
            self._queue.done(queued.uid)  # Somebody else was faster: that is worth an event, not a condition.
            self._recorder.failed(known, failure.message)
            return
        self._queue.put_back(
            queued,
            known,
            unschedulable_plugins=failure.unschedulable_plugins,
            pending_plugins=failure.pending_plugins,
        )
        book = self._cache.nominations
        kept = book.node_of(known.uid) or known.status.nominated_node_name
        book.put(known, kept if failure.nominated is None else failure.nominated)
        self._recorder.failed(known, failure.message)
        self._beside.start(
            self._statuses.not_scheduled(known, failure.reason, failure.message, failure.nominated),
            is_awaited=False,
        )

    # -- the binding cycle

    async def _bind(self, attempt: Attempt) -> None:
        queued, pod, framework = attempt.queued, attempt.pod, attempt.framework
        failure = await self._binding_cycle(attempt)
        if failure is not None:
            room = self._cache.is_assumed(pod)
            self._take_back(attempt, failure)
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
            if queued.flushed:
                log_flushed(queued)
        self._observer.bound(queued, self._clock.now())
        self._recorder.scheduled(pod, attempt.node_name)
        try:
            await framework.post_bind(attempt.cycle, pod, attempt.node_name)
        except PluginError as error:
            log_plugin_failure(error, pod, attempt.node_name)
        self._activate(attempt.cycle)

    async def _binding_cycle(self, attempt: Attempt) -> Failure | None:
        """What keeps a pod from being bound; None once it is bound."""
        pod, framework = attempt.pod, attempt.framework
        where = (attempt.cycle, pod, attempt.node_name)
        try:
            if framework.pre_bind_pre_flight(*where) or self._waiting.get(pod.uid):
                # It may take a while: others should know where the pod is going to be.
                await self._statuses.nominate(attempt.queued.pod, attempt.node_name)
            if log.v >= 4 and self._waiting.get(pod.uid):
                log.info(4, "Pod waiting on permit", pod=kobj(pod))
            status = await framework.wait_on_permit(pod)
            if status.code is not Code.SUCCESS:
                log_permit(status, pod)
                return failure_at_a_node(status)
            # From here on the pod cannot be refused any more, only fail: it need not remember events.
            self._queue.done(pod.uid)
            point, status = "PreBind", await framework.pre_bind(*where)
            if status.code is Code.SUCCESS and not await framework.handle.extenders.bind(*where[1:]):
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

    def _take_back(self, attempt: Attempt, failure: Failure) -> None:
        """Undo what a pod had reserved, and try it again later."""
        pod = attempt.pod
        for problem in attempt.framework.unreserve(attempt.cycle, pod, attempt.node_name):
            log_plugin_failure(problem, pod, attempt.node_name)
        self._cache.forget_pod(pod)
        self._fail(attempt.queued, failure)
