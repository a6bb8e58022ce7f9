"""The queue under random pods, attempts, events and time, compared with a model of its invariants.

The invariants: a pod is in exactly one place. No pod is left unschedulable that any event since its last
attempt began may have helped. No rejected pod is attempted again unless something may have helped it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from moorage.api.pod import Pod
from moorage.queue import cluster_events as events
from moorage.queue.cluster_events import Action, ClusterEvent, Resource
from moorage.queue.in_flight_events import InFlightEvent
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.scheduling_queue import Place
from tests.builders import make_node, make_pod
from tests.queue.helpers import GATE, INTERESTS, Case, by_priority, helping
from tests.strategies import examples

NAMES = [f"p{n}" for n in range(6)]
PLUGINS = sorted(set(INTERESTS) - {GATE, "Broken"})
HAPPENINGS = [
    InFlightEvent(events.NODE_DELETE, make_node("n"), None),
    InFlightEvent(ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL), make_node("n"), make_node("n")),
    InFlightEvent(ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT), make_node("n"), make_node("n")),
    InFlightEvent(events.ASSIGNED_POD_DELETE, make_pod("gone", on="n"), None),
    InFlightEvent(ClusterEvent(Resource.PERSISTENT_VOLUME, Action.ADD), None, make_node("a volume")),
    InFlightEvent(events.NODE_ADD, None, make_node("n", labels={"a": "b"})),
    *(InFlightEvent(events.NODE_ADD, None, helping(name)) for name in NAMES),
]


@dataclass
class Known:
    """The model's state of a pod."""

    pod: Pod
    refusers: set[str] = field(default_factory=set)
    missed: list[InFlightEvent] = field(default_factory=list)
    """The events since its last attempt began."""
    tried: bool = False
    pushed: bool = False
    """Whether it may be attempted again without an event: after an error, an activation, or a flush."""

    def helped(self, gated: bool) -> bool:
        """Whether an event may have helped it, according to a plugin that rejected it."""
        asked = self.refusers | ({GATE} if gated else set())
        return self.pushed or any(
            interest.event.covers(missed.event)
            and (interest.hint is None or interest.hint(self.pod, missed.old, missed.new))
            for missed in self.missed
            for plugin in asked
            for interest in INTERESTS[plugin]
        )


class QueueMachine(RuleBasedStateMachine):
    flying: Bundle[QueuedPod] = Bundle("flying")

    @initialize()
    def start(self) -> None:
        self.case = Case(max_unschedulable_seconds=40)
        self.queue = self.case.queue
        self.case.flusher.start()
        self.known: dict[str, Known] = {}
        self.ever_gated: set[str] = set()
        self.generation = 0

    def _note(self, happening: InFlightEvent, only: str | None = None) -> None:
        for uid, known in self.known.items():
            if only in (None, uid):
                known.missed.append(happening)

    def _waiting(self) -> Iterator[Known]:
        return (known for uid, known in self.known.items() if self.queue.place_of(uid) is not Place.IN_FLIGHT)

    @rule(name=st.sampled_from(NAMES), priority=st.integers(0, 2))
    def add(self, name: str, priority: int) -> None:
        if all(known.pod.name != name for known in self.known.values()):
            self.generation += 1
            pod = make_pod(name, uid=f"{name}-{self.generation}", priority=priority)
            self.known[pod.uid] = Known(pod)
            self.queue.add(pod)

    @rule(name=st.sampled_from(NAMES), labels=st.sampled_from([{}, {"a": "b"}, {"c": "d"}]))
    def update(self, name: str, labels: dict[str, str]) -> None:
        for known in self.known.values():
            if known.pod.name == name:
                old = known.pod
                new = make_pod(name, uid=old.uid, priority=old.priority, labels=labels)
                for event in self.queue.pod_events.of_update(old, new, is_target=True):
                    self._note(InFlightEvent(event, old, new), only=old.uid)
                known.pod = new
                self.queue.update(old, new)

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        for uid, known in list(self.known.items()):
            if known.pod.name == name and self.queue.place_of(uid) is not Place.IN_FLIGHT:
                self.queue.delete(known.pod)
                del self.known[uid]
                assert self.queue.place_of(uid) is None

    @rule(target=flying)
    def pop(self) -> Any:
        active, backoff = list(self.queue._active), list(self.queue._backoff.after_rejection)
        queued = self.queue.pop_now()
        if queued is None:
            assert not active
            assert not backoff
            return multiple()
        if active:
            assert by_priority(queued) == min(map(by_priority, active))
        else:
            assert queued.backoff_expiration == min(other.backoff_expiration or 0.0 for other in backoff)
        known = self.known[queued.uid]
        known.refusers, known.missed, known.tried, known.pushed = set(), [], True, False
        assert queued.pod is known.pod
        return queued

    @rule(queued=consumes(flying), plugins=st.sets(st.sampled_from(PLUGINS)), pending=st.booleans())
    def fail(self, queued: QueuedPod, plugins: set[str], pending: bool) -> None:
        known = self.known[queued.uid]
        known.refusers = plugins
        known.pushed |= not plugins
        waits = plugins & {"Any", "Pods"} if pending else set()
        self.case.fail(queued, *(plugins - waits), pending=waits, pod=known.pod)

    @rule(queued=consumes(flying))
    def bind(self, queued: QueuedPod) -> None:
        self.queue.delete(queued.pod)
        self.queue.done(queued.uid)
        del self.known[queued.uid]

    @rule(happening=st.sampled_from(HAPPENINGS))
    def happen(self, happening: InFlightEvent) -> None:
        self._note(happening)
        self.queue.move_all(happening.event, happening.old, happening.new)

    @rule(name=st.sampled_from(NAMES))
    def activate(self, name: str) -> None:
        for known in self.known.values():
            if known.pod.name == name:
                known.pushed = True
                self.queue.activate([known.pod])

    @rule(name=st.sampled_from(NAMES), closed=st.booleans())
    def gate(self, name: str, closed: bool) -> None:
        (self.case.closed.add if closed else self.case.closed.discard)(name)

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 3.7, 20.0, 75.0]))
    def wait(self, seconds: float) -> None:
        timeouts = sum(n for (_, event), n in self.case.observer.came.items() if "Timeout" in event)
        self.case.clock.advance(seconds)
        now = sum(n for (_, event), n in self.case.observer.came.items() if "Timeout" in event)
        if now != timeouts:
            # A pod was flushed; that event is kept for all pods in flight as well.
            for known in self.known.values():
                known.pushed = True

    @invariant()
    def lawful(self) -> None:
        self.queue.validate()
        now = self.case.clock.now()
        assert {uid for uid in self.known if self.queue.place_of(uid) is None} == set()
        assert len(self.queue) + len(self.queue.pods_in(Place.IN_FLIGHT)) == len(self.known)
        for queued in self.queue:
            known, place = self.known[queued.uid], self.queue.place_of(queued.uid)
            assert queued.pod is known.pod
            if place is Place.GATED:
                self.ever_gated.add(queued.uid)
            if place is Place.UNSCHEDULABLE:
                assert known.refusers
                if not known.pushed:
                    assert not known.helped(gated=False), (queued, known)
                assert now - max(queued.timestamp, queued.flush_timestamp or 0.0) <= 40 + 30
            elif known.tried:
                assert known.helped(gated=queued.uid in self.ever_gated), (queued, known)
            if place is Place.BACKOFF:
                assert self.queue._backoff.is_backing_off(queued)


QueueMachine.TestCase.settings = examples(100, stateful_step_count=50)
test_laws = QueueMachine.TestCase
