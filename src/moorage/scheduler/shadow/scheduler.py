"""A scheduler that binds nothing: it decides each pod when another scheduler binds it, and compares.

It reads what any scheduler reads, and writes nothing: there is no queue to work off, no event and no status.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from moorage.api.pod import Pod
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.pre_binding import PreBinding
from moorage.klog import Logger, kobj
from moorage.scheduler.event_handlers import EventHandlers
from moorage.scheduler.recorder import Recorder
from moorage.scheduler.scheduler import Scheduler
from moorage.scheduler.shadow.bindings import HOLD_SECONDS, ShadowHandlers
from moorage.scheduler.shadow.comparing import compare, result_of
from moorage.scheduler.shadow.report import ShadowReport

_MAX_REORDERED: Final = 8
"""Number of bindings of the same moment that a pod is tried without, and with."""

log = Logger(__name__)


class ShadowScheduler(Scheduler):
    """Compares its decisions with those of another scheduler.

    report: receives each comparison.
    recorder: records each pod with the node that the other scheduler chose.
    """

    def __init__(
        self, *args: Any, report: ShadowReport, recorder: Recorder | None = None, **options: Any
    ) -> None:
        self._report = report
        self._recording = recorder
        self._recent: deque[tuple[float, str]] = deque()
        """Times and uids of the pods decided last."""
        super().__init__(*args, **options)
        if recorder is not None:
            recorder.follow(self.informers)
        self._plain_engine = Engine(remembers=False)
        """Decides in other states than the current one, without an effect on ties and caches."""

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

    def _decide(self, pod: Pod, node: str) -> None:
        """Decide a pod that was bound to a node, and report whether that is the same."""
        framework = self._profiles.of(pod)
        assert framework is not None
        if self._recording is not None:
            self._recording.record(pod, {"node": node})
        now = self._clock.now()
        try:
            decision = self._decision(self._schedule_one.engine, framework, pod)
            is_different = result_of(decision, node) == "different"
            other = self._reordered(framework, pod, node, now) if is_different else None
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

    def _reordered(self, framework: Framework, pod: Pod, node: str, now: float) -> Decision | None:
        """A decision that agrees, if bindings and deletions of the same moment came in another order."""
        while self._recent and now - self._recent[0][0] > HOLD_SECONDS:
            self._recent.popleft()
        recent = (self.cache.pod(uid) for _, uid in reversed(self._recent))
        decided = [each for each in recent if each is not None][:_MAX_REORDERED]
        deleted = self._bindings.deleted_since(now - HOLD_SECONDS)[:_MAX_REORDERED]
        held = list(self._bindings.held_bindings())[:_MAX_REORDERED]
        for removed, added in ((decided, []), ([], deleted), ([], held)):
            decision = self._decision_with(removed, added, framework, pod, node)
            if decision is not None:
                return decision
        return None

    def _decision_with(
        self, removed: list[Pod], added: list[Pod], framework: Framework, pod: Pod, node: str
    ) -> Decision | None:
        """A decision that agrees with one or more pods removed from the cache, or added to it, in turn."""
        done: list[Pod] = []
        try:
            for other in removed or added:
                self._set(other, is_there=bool(added))
                done.append(other)
                decision = self._decision(self._plain_engine, framework, pod)
                if result_of(decision, node) != "different":
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
