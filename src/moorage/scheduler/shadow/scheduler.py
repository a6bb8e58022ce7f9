"""A scheduler that binds nothing: it decides pods and groups when another scheduler binds them, and compares.

It reads what any scheduler reads, and writes nothing: there is no queue to work off, no event and no status.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from moorage.api.pod import Pod
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.engine.followed_nodes import FollowedDecision, assigned_nodes, follow
from moorage.engine.group_choices import GroupChoices, RandomChoices
from moorage.engine.group_cycle import GroupCycle
from moorage.engine.group_result import GroupDecision
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.pod_groups import PodGroupInfo, group_info
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.pre_binding import PreBinding
from moorage.klog import Logger, kobj
from moorage.scheduler.event_handlers import EventHandlers
from moorage.scheduler.recorded_group import bound_group
from moorage.scheduler.recorder import Recorder, pod_attempt
from moorage.scheduler.scheduler import Scheduler
from moorage.scheduler.shadow.bindings import HOLD_SECONDS, ShadowHandlers
from moorage.scheduler.shadow.comparing import compare, result_of
from moorage.scheduler.shadow.group_comparing import compare_group
from moorage.scheduler.shadow.held_bindings import HeldAttempt
from moorage.scheduler.shadow.report import ShadowReport

_MAX_REORDERED: Final = 8
"""Number of bindings of the same moment that a pod is tried without, and with."""
_MAX_RECENT: Final = 64
"""Number of pods decided last that are known; some may be gone when they are looked at."""

log = Logger(__name__)

T = TypeVar("T")


class ShadowScheduler(Scheduler):
    """Compares its decisions with those of another scheduler.

    report: receives each comparison.
    recorder: records each pod and each group with the nodes that the other scheduler chose.
    """

    def __init__(
        self, *args: Any, report: ShadowReport, recorder: Recorder | None = None, **options: Any
    ) -> None:
        self._report = report
        self._recording = recorder
        self._recent: deque[tuple[float, str]] = deque(maxlen=_MAX_RECENT)
        """Times and uids of the pods decided last."""
        super().__init__(*args, **options)
        if recorder is not None:
            recorder.follow(self.informers)
        self._plain_engine = Engine(remembers=False)
        """Decides in other states than the current one, without an effect on ties and caches."""

    def _new_handle(self, *args: Any) -> Handle:
        handle = super()._new_handle(*args)
        assert handle.live is not None
        return replace(handle, live=replace(handle.live, only_compares=True))

    def _new_handlers(self, pre_binding: PreBinding) -> EventHandlers:
        handlers = ShadowHandlers(self.cache, self.queue, self._profiles, self._waiting, pre_binding)
        applied = (lambda *change: None) if self._recording is None else self._recording.changed
        sort_key = next(iter(self._profiles.values())).sort_key
        handlers.follow(self._decide, applied, self._clock, sort_key)
        self._bindings = handlers
        return handlers

    async def _loop(self) -> None:
        if self._recording is not None:
            self._recording.begin()
        while not self._schedule_one.is_stopping:
            self._wakeup.clear()
            await self._wakeup.wait()

    async def drain(self, seconds: float) -> None:
        """Decide what has been bound so far, and end."""
        self._bindings.settle_all()
        await super().drain(seconds)

    def _decide(self, held: HeldAttempt) -> None:
        """Decide what the other scheduler has bound, and report whether that is the same."""
        if held.root is not None:
            root = group_info(self.cache.pod_groups, held.root, held.members_of)
            if root is not None:
                self._decide_group(root, held.nodes, held.since)
                return
        for binding in held.bindings.values():
            self._decide_pod(binding.pending, binding.bound.spec.node_name)

    def _decide_pod(self, pod: Pod, node: str) -> None:
        framework = self._profiles.of(pod)
        assert framework is not None
        if self._recording is not None:
            self._recording.record(pod_attempt(pod, {"node": node}))
        now = self._clock.now()
        try:
            decision = self._decision(self._schedule_one.engine, framework, pod)
            is_different = result_of(decision, node) == "different"
            agreeing = partial(self._agreeing_decision, framework, pod, node)
            other = self._reordered(agreeing, now - HOLD_SECONDS) if is_different else None
            evidence = self._report.evidence(pod.spec.scheduler_name)
            comparison = compare(
                other or decision,
                node,
                framework,
                evidence,
                self._clock.utc_now(),
                reordered=other is not None,
            )
        except Exception as error:
            log.exception(error, "Unexpected error in a shadow decision", pod=kobj(pod))
            return
        self._recent.append((now, pod.uid))
        self._report.add(comparison)
        if comparison.result == "different":
            log.info(
                1,
                "Decision differs",
                pod=kobj(pod),
                node=node,
                ours=comparison.ours,
                plugin=comparison.plugin,
                reason=comparison.reason,
            )

    def _decision(self, engine: Engine, framework: Framework, pod: Pod) -> Decision:
        self.cycles_begun += 1
        decision = engine.decide(framework, pod, self.cache.snapshot(), CycleState())
        if decision.post_filter is not None:
            decision.post_filter.done()
        return decision

    def _agreeing_decision(self, framework: Framework, pod: Pod, node: str) -> Decision | None:
        decision = self._decision(self._plain_engine, framework, pod)
        return None if result_of(decision, node) == "different" else decision

    # Groups

    def _decide_group(self, root: PodGroupInfo, nodes: Mapping[str, str], since: float) -> None:
        """Decide a group whose first binding was seen at a time."""
        framework = self._profiles.of(next(root.all_pods()))
        assert framework is not None
        if self._recording is not None:
            self._recording.record(bound_group(root, nodes))
        now = self._clock.now()
        try:
            own = self._group_decision(
                self._schedule_one.engine, framework, root, RandomChoices(self._random)
            )
            followed = self._followed(framework, root, nodes)
            other = None
            if followed.disagreement is not None and assigned_nodes(own) != nodes:
                agreeing = partial(self._agreeing_group, framework, root, nodes)
                other = self._reordered(agreeing, since - HOLD_SECONDS)
            comparison = compare_group(
                own,
                other or followed,
                nodes,
                framework,
                self._report.evidence(framework.name),
                self._clock.utc_now(),
                reordered=other is not None,
            )
        except Exception as error:
            log.exception(error, "Unexpected error in a shadow decision", podGroup=kobj(root.group))
            return
        self._recent.extend((now, uid) for uid in nodes)
        self._report.add(comparison)
        if comparison.result == "different":
            log.info(
                1,
                "Decision differs",
                podGroup=kobj(root.group),
                pod=comparison.member,
                plugin=comparison.plugin,
                reason=comparison.reason,
            )

    def _group_decision(
        self, engine: Engine, framework: Framework, root: PodGroupInfo, choices: GroupChoices
    ) -> GroupDecision:
        self.cycles_begun += 1
        has_placements = self._handle.version.features.topology_aware_workload_scheduling
        cycle = GroupCycle(engine, framework, self.cache, choices, has_placements=has_placements)
        decision = run_without_suspending(cycle.decide(root))
        if decision.post_filter is not None:
            decision.post_filter.done()
        return decision

    def _followed(
        self, framework: Framework, root: PodGroupInfo, nodes: Mapping[str, str]
    ) -> FollowedDecision:
        return follow(root, nodes, partial(self._group_decision, self._plain_engine, framework, root))

    def _agreeing_group(
        self, framework: Framework, root: PodGroupInfo, nodes: Mapping[str, str]
    ) -> FollowedDecision | None:
        followed = self._followed(framework, root, nodes)
        return followed if followed.disagreement is None else None

    # Other orders

    def _reordered(self, decide: Callable[[], T | None], since: float) -> T | None:
        """A decision that agrees, if what has happened since a time came in another order."""
        found = self._with_other_bindings(decide, since)
        if found is not None:
            return found
        book = self.cache.nominations
        nominated = [(pod, book.node_of(pod.uid)) for pod in self._bindings.nominated_since(since)]
        for pod, _ in nominated:
            book.remove(pod.uid)
        try:
            return (decide() or self._with_other_bindings(decide, since)) if nominated else None
        finally:
            for pod, node in nominated:
                if node:
                    book.put(pod, node)

    def _with_other_bindings(self, decide: Callable[[], T | None], since: float) -> T | None:
        """A decision that agrees, if bindings and deletions came in another order."""
        recent = (self.cache.pod(uid) for time, uid in reversed(self._recent) if time >= since)
        decided = [each for each in recent if each is not None][:_MAX_REORDERED]
        deleted = self._bindings.deleted_since(since)[:_MAX_REORDERED]
        held = list(self._bindings.held_bindings())[:_MAX_REORDERED]
        for removed, added in ((decided, []), ([], deleted), ([], held)):
            decision = self._decision_with(removed, added, decide)
            if decision is not None:
                return decision
        return None

    def _decision_with(
        self, removed: list[Pod], added: list[Pod], decide: Callable[[], T | None]
    ) -> T | None:
        """A decision that agrees with one or more pods removed from the cache, or added to it, in turn."""
        done: list[Pod] = []
        try:
            for other in removed or added:
                self._set(other, is_there=bool(added))
                done.append(other)
                decision = decide()
                if decision is not None:
                    return decision
        finally:
            for other in reversed(done):
                self._set(other, is_there=bool(removed))
        return None

    def _set(self, pod: Pod, *, is_there: bool) -> None:
        if is_there:
            self.cache.put_pod(pod)
        else:
            self.cache.remove_pod(pod)
