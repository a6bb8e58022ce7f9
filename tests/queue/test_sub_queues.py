"""Sub-queues: which pod is popped, compared with a plain model, and a whole queue with them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import initialize, multiple, rule

from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.queue import cluster_events as events
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.queueing_rules import QueueRules
from moorage.queue.scheduling_queue import Place
from moorage.queue.sub_queues import Firsts, SharedSubQueueOrder
from moorage.testing import check_plugin
from tests.builders import make_node, make_pod
from tests.queue.helpers import Case, by_priority
from tests.queue.test_properties import QueueMachine
from tests.strategies import examples

TEAMS = ["a", "b", "c"]


class ByTeam:
    """Pods by the first letter of their names, which is their team; teams by numbers that may change."""

    def __init__(self, says_which: bool = True) -> None:
        self.keys = dict.fromkeys(TEAMS, 0)
        self.says_which = says_which
        self.calls: list[tuple[Hashable, bool]] = []
        self.sorted = 0
        self._changed: set[Hashable] = set()

    def change(self, team: str, key: int) -> None:
        self.keys[team] = key
        self._changed.add(team)

    def sub_queue(self, queued: QueuedPod) -> str:
        return queued.pod.labels.get("team") or queued.pod.name[0]

    def sub_queue_sort(self, sub_queue: Any, first: QueuedPod) -> tuple[int, int]:
        self.sorted += 1
        return (self.keys.get(sub_queue, 0), -first.priority)

    def changed_sub_queues(
        self, firsts: Firsts, popped: Hashable | None, failed: bool
    ) -> Iterable[Hashable] | None:
        self.calls.append((popped, failed))
        changed, self._changed = self._changed, set()
        return changed if self.says_which else None


def queued_pod(uid: str, priority: int = 0) -> QueuedPod:
    return QueuedPod(make_pod(uid, uid=uid, priority=priority), 0.0)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "move", "remove", "pop", "change"]),
        st.sampled_from(TEAMS),
        st.integers(0, 3),
    ),
    max_size=40,
)


@given(STEPS, st.booleans())
def test_the_first_pod_of_the_first_sub_queue_is_popped(
    steps: list[tuple[str, str, int]], says_which: bool
) -> None:
    order = ByTeam(says_which)
    place = SharedSubQueueOrder(order).place(by_priority)
    expected: list[QueuedPod] = []
    for number, (step, team, amount) in enumerate(steps):
        match step:
            case "put":
                queued = queued_pod(f"{team}{number}", priority=amount)
                place.put(queued)
                expected.append(queued)
            case "move" if expected:
                queued = expected[amount % len(expected)]
                queued.pod = make_pod(queued.pod.name, uid=queued.uid, labels={"team": team}, priority=amount)
                queued.priority = amount
                place.put(queued)
            case "remove" if expected:
                queued = expected.pop(amount % len(expected))
                assert place.remove(queued.uid) is queued
                assert place.remove(queued.uid) is None
            case "change":
                order.change(team, amount)
            case "pop":
                popped = place.pop()
                assert (popped is None) is not expected
                if popped is not None:
                    assert key_of(order, expected, popped) == min(
                        key_of(order, expected, each) for each in expected
                    )
                    expected.remove(popped)
        if number % 3 == 0:
            place.validate()
        assert {each.uid for each in place} == {each.uid for each in expected}
        assert len(place) == len(expected)
    place.validate()
    listed = place.in_order()
    assert [place.pop() for _ in expected] == listed or has_ties(order, listed)


def key_of(order: ByTeam, pods: list[QueuedPod], queued: QueuedPod) -> Any:
    """The place of a pod: the key of its team with that team's first pod, then its own."""
    team = order.sub_queue(queued)
    first = min((each for each in pods if order.sub_queue(each) == team), key=by_priority)
    return order.sub_queue_sort(team, first), by_priority(queued)


def has_ties(order: ByTeam, pods: list[QueuedPod]) -> bool:
    """Whether teams are equal: their order is that in which their pods became the first."""
    keys = [order.keys[team] for team in {order.sub_queue(each) for each in pods}]
    return len(set(keys)) < len(keys)


def test_a_pop_computes_only_the_keys_that_have_changed() -> None:
    order = ByTeam()
    place = SharedSubQueueOrder(order).place(by_priority)
    for number in range(300):
        place.put(queued_pod(f"{TEAMS[number % 3]}{number}"))
    assert order.sorted == 3
    order.change("b", -1)
    assert [place.pop() for _ in range(2)]
    # That of b, and that of b with the pod that became its first.
    assert order.sorted == 5


def case_with(order: ByTeam, **options: Any) -> Case:
    return Case(sub_queues=order, **options)


def test_the_order_is_told_which_sub_queue_was_popped_and_whether_the_attempt_failed() -> None:
    order = ByTeam()
    case = case_with(order)
    case.add("a1", "b1", "b2", "c1")
    order.change("a", -2)
    case.fail(case.attempt("a1"), "Any")
    case.fail(case.attempt("b1"))
    case.queue.done(case.attempt("c1").uid)
    case.attempt("b2")
    assert order.calls == [(None, False), ("a", True), ("b", True), ("c", False)]


def test_a_rejection_after_an_error_counts_as_a_failure() -> None:
    order = ByTeam()
    case = case_with(order)
    case.add("a1", "b1")
    queued = case.attempt("a1")
    case.fail(queued)
    case.queue.activate([queued.pod])
    case.attempt("b1")
    case.fail(case.attempt("a1"), "Any")
    case.add("c1")
    case.pop()
    assert order.calls[-1] == ("a", True)


def test_pods_popped_from_backoff_early_are_in_sub_queues_too() -> None:
    order = ByTeam()
    case = case_with(order)
    case.add("a1", "b1", "b2")
    for _ in range(3):
        queued = case.queue.pop_now()
        assert queued is not None
        case.fail(queued, "Any")
    case.queue.move_all(*node_added())
    assert {case.where(name) for name in ("a1", "b1", "b2")} == {Place.BACKOFF}
    order.change("b", -1)
    case.queue.validate()
    assert case.pop() == "b1"
    order.change("b", 1)
    assert case.pop_all() == ["a1", "b2"]
    case.queue.validate()


def node_added() -> tuple[Any, Any, Any]:
    return events.NODE_ADD, None, make_node("n")


@pytest.mark.parametrize("says_which", [True, False])
def test_a_queue_is_reconfigured_with_and_without_sub_queues(says_which: bool) -> None:
    order = ByTeam(says_which)
    case = Case()
    case.add("a1", "b1", "a2", "c1")
    case.fail(case.attempt("a1"), "Any")
    case.queue.move_all(*node_added())
    rules = {DEFAULT_SCHEDULER: QueueRules(case._gate, {})}
    order.change("c", -1)
    order.change("a", 1)
    case.queue.reconfigure(rules, by_priority, sub_queues=order)
    case.queue.validate()
    assert [queued.pod.name for queued in case.queue.pods_in(Place.ACTIVE)] == ["c1", "b1", "a2"]
    assert case.pop() == "c1"
    case.queue.reconfigure(rules, by_priority)
    case.queue.validate()
    assert case.pop_all() == ["b1", "a2", "a1"]


def test_the_example_of_the_documentation_takes_turns() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/plugins.md").read_text()
    (source,) = re.findall(r"^```python\n([^`]*?class TakesTurns:.*?)^```$", page, re.MULTILINE | re.DOTALL)
    module: dict[str, Any] = {}
    exec(source, module)
    assert check_plugin(module["TakesTurns"]).ok
    case = case_with(module["TakesTurns"]())
    for namespace, names in (("first", "pqr"), ("second", "st")):
        case.add(*names, namespace=namespace)
    case.queue.validate()
    assert case.pop_all() == ["p", "s", "q", "t", "r"]


class SubQueueMachine(QueueMachine):
    """The laws of the queue hold with sub-queues; what is popped is the first pod of the first of them."""

    @initialize()
    def start(self) -> None:
        self.order = ByPlace()
        self.case = Case(max_unschedulable_seconds=40, sub_queues=self.order)
        self.queue = self.case.queue
        self.case.flusher.start()
        self.known = {}
        self.ever_gated = set()
        self.generation = 0

    @rule(team=st.sampled_from("01"), key=st.integers(-1, 1))
    def change(self, team: str, key: int) -> None:
        self.order.change(team, key)

    @rule(target=QueueMachine.flying)
    def pop(self) -> Any:
        active, backoff = list(self.queue._active), list(self.queue._backoff.after_rejection)
        queued = self.queue.pop_now()
        if queued is None:
            assert not active
            assert not backoff
            return multiple()
        place, key = (active, by_priority) if active else (backoff, self.by_backoff)
        team = self.order.sub_queue(queued)
        teams = {self.order.sub_queue(each) for each in place}
        assert self.order.keys[team] == min(self.order.keys[each] for each in teams)
        inside = [each for each in place if self.order.sub_queue(each) == team]
        assert key(queued) == min(map(key, inside))
        known = self.known[queued.uid]
        known.refusers, known.missed, known.tried, known.pushed = set(), [], True, False
        assert queued.pod is known.pod
        return queued

    @staticmethod
    def by_backoff(queued: QueuedPod) -> Any:
        return queued.backoff_expiration or 0.0


class ByPlace(ByTeam):
    """Two teams: pods with even and odd numbers; nothing but the number of the team counts."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = {"0": 0, "1": 0}

    def sub_queue(self, queued: QueuedPod) -> str:
        return str(int(queued.pod.name[1]) % 2)

    def sub_queue_sort(self, sub_queue: Any, first: QueuedPod) -> tuple[int, int]:
        return (self.keys[sub_queue], 0)


SubQueueMachine.TestCase.settings = examples(60, stateful_step_count=50)
test_laws_with_sub_queues = SubQueueMachine.TestCase
