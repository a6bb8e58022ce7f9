"""Groups in the queue: one entry for all waiting members, compared with a model of where each pod belongs."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moorage.api.pod import DEFAULT_SCHEDULER, Pod
from moorage.api.pod_groups import GroupKey, group_of
from moorage.clock import VirtualClock
from moorage.cluster.nominations import Nominations
from moorage.queue.cluster_events import Action, ClusterEvent, Resource
from moorage.queue.flushing import Flusher
from moorage.queue.group_queue import GroupSchedulingQueue
from moorage.queue.queued_group import QueuedGroup
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.queueing_rules import QueueRules
from moorage.queue.scheduling_queue import Place
from tests.builders import make_pod
from tests.queue.helpers import GATE, INTERESTS, START, Observer
from tests.strategies import examples

LONGEST_BACKOFF_SECONDS = 10 * 3.0 + 2
"""For nine pods at most, with the window in which it expires."""


@dataclass
class Tree:
    """Groups that are known, each with its parent, if it has one."""

    parents: dict[GroupKey, GroupKey | None] = field(default_factory=dict)
    priorities: dict[GroupKey, int] = field(default_factory=dict)

    def group_of(self, pod: Pod) -> GroupKey | None:
        return group_of(pod)

    def root_of(self, key: GroupKey) -> GroupKey | None:
        while key in self.parents:
            parent = self.parents[key]
            if parent is None:
                return key
            key = parent
        return None

    def priority_of_group(self, key: GroupKey) -> int:
        return self.priorities.get(key, 0)


def leaf(name: str) -> GroupKey:
    return GroupKey("default", name)


WHOLE = GroupKey("default", "whole", is_composite=True)


def member(name: str, group: str, **fields: object) -> Pod:
    return make_pod(name, uid=name, schedulingGroup={"podGroupName": group}, **fields)


class Case:
    """A queue with groups, on a virtual clock, with one gate."""

    def __init__(self) -> None:
        self.clock = VirtualClock(START)
        self.closed: set[str] = set()
        self.tree = Tree()
        self.observer = Observer()
        self.queue = GroupSchedulingQueue(
            {DEFAULT_SCHEDULER: QueueRules(self._gate, INTERESTS)},
            lambda queued: (-queued.priority, queued.timestamp),
            self.clock,
            groups=self.tree,
            nominations=Nominations(),
            observer=self.observer,
        )
        self.flusher = Flusher(self.queue, self.clock)
        self.flusher.start()

    def _gate(self, pod: Pod, ask_first: str) -> str:
        return GATE if pod.name in self.closed else ""

    def add_group(self, name: str, priority: int = 0, parent: GroupKey | None = None) -> None:
        self.tree.parents[leaf(name)] = parent
        self.tree.priorities[leaf(name)] = priority
        self.queue.groups_changed([leaf(name)])

    def add(self, group: str, *names: str, **fields: object) -> None:
        for name in names:
            self.queue.add(member(name, group, **fields))

    def pop(self) -> QueuedGroup:
        queued = self.queue.pop_now()
        assert isinstance(queued, QueuedGroup)
        return queued

    def back(self, group: QueuedGroup, *names: str, scheduled: bool = False, failed: bool = False) -> None:
        """End an attempt: some members come back, the others are bound."""
        for queued in list(group.members.values()):
            if queued.pod.name in names:
                self.queue.put_back(queued, queued.pod, unschedulable_plugins=("Any",))
            else:
                self.queue.done(queued.uid)
        self.queue.group_attempted(group, scheduled=scheduled, failed=failed)

    def places(self) -> dict[str, Place]:
        return {queued.pod.name: place for place in Place for queued in self.queue.pods_in(place)}


def names_of(group: QueuedGroup) -> list[str]:
    return [queued.pod.name for queued in group.in_order()]


def test_members_wait_for_their_group() -> None:
    case = Case()
    case.add("g", "a", "b")
    assert case.places() == {"a": Place.INCOMPLETE, "b": Place.INCOMPLETE}
    assert case.queue.pop_now() is None
    case.add_group("g")
    assert case.places() == {"a": Place.ACTIVE, "b": Place.ACTIVE}
    assert names_of(case.pop()) == ["a", "b"]


def test_a_group_whose_parent_is_missing_is_incomplete() -> None:
    case = Case()
    case.add_group("g", parent=WHOLE)
    case.add("g", "a")
    assert case.places() == {"a": Place.INCOMPLETE}
    case.tree.parents[WHOLE] = None
    case.queue.groups_changed([leaf("g")])
    group = case.pop()
    assert (group.key, names_of(group)) == (WHOLE, ["a"])


def test_one_gated_member_gates_the_group() -> None:
    case = Case()
    case.add_group("g")
    case.closed.add("b")
    case.add("g", "a", "b", "c")
    assert set(case.places().values()) == {Place.GATED}
    case.closed.clear()
    case.queue.move_all(ClusterEvent(Resource.PERSISTENT_VOLUME, Action.ADD), None, make_pod("x"))
    assert set(case.places().values()) == {Place.ACTIVE}


def test_a_group_is_sorted_by_its_own_priority_and_the_time_of_its_first_member() -> None:
    case = Case()
    case.add_group("low", priority=1)
    case.add_group("high", priority=5)
    case.add("low", "l", priority=9)
    case.clock.advance(1)
    case.queue.add(make_pod("single", uid="single", priority=3))
    case.add("high", "h")
    popped = [case.queue.pop_now() for _ in range(3)]
    assert [queued.pod.name for queued in popped if queued is not None] == ["h", "single", "l"]


def test_members_are_tried_by_priority_then_attempts_then_time_then_name() -> None:
    case = Case()
    case.add_group("g")
    case.add("g", "b", "a")
    group = case.pop()
    case.add("g", "new")
    case.back(group, "a", "b")
    case.add("g", "urgent", priority=2)
    case.clock.advance(LONGEST_BACKOFF_SECONDS)
    assert names_of(case.pop()) == ["urgent", "a", "b", "new"]


def test_who_comes_while_the_group_is_in_flight_joins_its_next_entry() -> None:
    case = Case()
    case.add_group("g")
    case.add("g", "a", "b")
    group = case.pop()
    case.add("g", "late")
    assert case.places()["late"] is Place.PENDING
    case.back(group, scheduled=True)
    assert case.places() == {"late": Place.ACTIVE}


def test_what_is_left_of_a_scheduled_group_is_tried_at_once_in_its_old_place() -> None:
    case = Case()
    case.add_group("g")
    case.add("g", "a", "b")
    case.clock.advance(1)
    case.add_group("h")
    case.add("h", "later")
    group = case.pop()
    case.clock.advance(1)
    case.back(group, "b", scheduled=True)
    assert names_of(case.pop()) == ["b"]


def test_a_rejected_group_waits_longer_the_more_pods_it_has_and_is_never_popped_early() -> None:
    case = Case()
    case.add_group("g")
    case.add("g", *"abcd")
    waits = []
    for _ in range(7):
        group = case.pop()
        case.back(group, *"abcd")
        assert case.queue.pop_now() is None
        began = case.clock.now()
        while set(case.places().values()) == {Place.BACKOFF}:
            case.clock.advance(0.5)
        waits.append(round(case.clock.now() - began))
    assert waits == [2, 3, 5, 9, 17, 21, 21]
    assert case.places() == dict.fromkeys("abcd", Place.ACTIVE)


def test_activating_a_member_activates_its_group() -> None:
    case = Case()
    case.add_group("g")
    case.add("g", "a", "b")
    case.back(case.pop(), "a", "b")
    assert case.places() == dict.fromkeys("ab", Place.BACKOFF)
    case.queue.activate([member("b", "g")])
    assert case.places() == dict.fromkeys("ab", Place.ACTIVE)


def test_a_group_is_activated_by_its_key() -> None:
    case = Case()
    case.add_group("g")
    case.add("g", "a", "b")
    case.back(case.pop(), "a", "b")
    case.queue.activate_group(leaf("other"))
    assert case.places() == dict.fromkeys("ab", Place.BACKOFF)
    case.queue.activate_group(leaf("g"))
    assert case.places() == dict.fromkeys("ab", Place.ACTIVE)
    group = case.pop()
    case.queue.activate_group(leaf("g"))
    case.back(group, "a", "b")
    assert case.places() == dict.fromkeys("ab", Place.BACKOFF), "a group in flight is tried after backoff"


def test_members_of_a_deleted_group_are_incomplete() -> None:
    case = Case()
    case.add_group("g")
    case.add("g", "a", "b")
    group = case.pop()
    case.add("g", "late")
    del case.tree.parents[leaf("g")]
    case.queue.groups_changed([leaf("g")])
    assert case.places()["late"] is Place.INCOMPLETE
    case.back(group, "a")
    assert case.places() == {"a": Place.INCOMPLETE, "late": Place.INCOMPLETE}


GROUPS = ["g", "h"]
NAMES = [f"{group}{number}" for group in GROUPS for number in range(3)]


class GroupQueueMachine(RuleBasedStateMachine):
    """Groups and members come and go, are gated, tried and put back, in any order."""

    @initialize()
    def start(self) -> None:
        self.case = Case()
        self.queue = self.case.queue
        self.pods: dict[str, Pod] = {}
        self.flying: QueuedGroup | QueuedPod | None = None
        self.generation = 0

    @rule(name=st.sampled_from(NAMES))
    def add(self, name: str) -> None:
        if name not in self.pods:
            self.generation += 1
            pod = member(name, name[0])
            pod = msgspec.structs.replace(
                pod, metadata=msgspec.structs.replace(pod.metadata, uid=f"{name}-{self.generation}")
            )
            self.pods[name] = pod
            self.queue.add(pod)

    @rule(name=st.sampled_from(NAMES), label=st.sampled_from("abc"))
    def update(self, name: str, label: str) -> None:
        old = self.pods.get(name)
        if old is not None:
            meta = msgspec.structs.replace(old.metadata, labels={"a": label})
            self.pods[name] = msgspec.structs.replace(old, metadata=meta)
            self.queue.update(old, self.pods[name])

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        pod = self.pods.get(name)
        if pod is not None and self.queue.place_of(pod.uid) is not Place.IN_FLIGHT:
            self.queue.delete(pod)
            del self.pods[name]

    @rule(group=st.sampled_from(GROUPS), parent=st.sampled_from([None, WHOLE]))
    def put_group(self, group: str, parent: GroupKey | None) -> None:
        self.case.tree.parents[leaf(group)] = parent
        self.queue.groups_changed([leaf(group)])

    @rule(group=st.sampled_from(GROUPS))
    def delete_group(self, group: str) -> None:
        self.case.tree.parents.pop(leaf(group), None)
        self.queue.groups_changed([leaf(group)])

    @rule(exists=st.booleans())
    def change_whole(self, exists: bool) -> None:
        if exists:
            self.case.tree.parents[WHOLE] = None
        else:
            self.case.tree.parents.pop(WHOLE, None)
        self.queue.groups_changed([leaf(group) for group in GROUPS])

    @rule(name=st.sampled_from(NAMES), closed=st.booleans())
    def gate(self, name: str, closed: bool) -> None:
        (self.case.closed.add if closed else self.case.closed.discard)(name)

    @rule()
    def ungate(self) -> None:
        self.queue.move_all(ClusterEvent(Resource.PERSISTENT_VOLUME, Action.ADD), None, make_pod("x"))

    @rule(name=st.sampled_from(NAMES))
    def activate(self, name: str) -> None:
        if name in self.pods:
            self.queue.activate([self.pods[name]])

    @precondition(lambda self: self.flying is None)
    @rule()
    def pop(self) -> None:
        self.flying = self.queue.pop_now()

    @precondition(lambda self: self.flying is not None)
    @rule(outcome=st.sampled_from(["scheduled", "rejected", "failed"]), bound=st.sets(st.sampled_from(NAMES)))
    def end(self, outcome: str, bound: set[str]) -> None:
        group, self.flying = self.flying, None
        assert isinstance(group, QueuedGroup)
        for queued in list(group.members.values()):
            pod = self.pods[queued.pod.name]
            if outcome == "scheduled" and pod.name in bound:
                del self.pods[pod.name]
                self.queue.delete(pod)
                self.queue.done(pod.uid)
            else:
                self.queue.put_back(queued, pod, unschedulable_plugins=("Any",))
        self.queue.group_attempted(group, scheduled=outcome == "scheduled", failed=outcome == "failed")

    @rule(seconds=st.sampled_from([0.3, 2.0, LONGEST_BACKOFF_SECONDS]))
    def wait(self, seconds: float) -> None:
        self.case.clock.advance(seconds)
        if seconds == LONGEST_BACKOFF_SECONDS:
            assert not self.queue.pods_in(Place.BACKOFF)

    @invariant()
    def lawful(self) -> None:
        self.queue.validate()
        waiting = {queued.uid: queued for queued in self.queue}
        flying = {queued.uid for queued in self.queue.pods_in(Place.IN_FLIGHT)}
        assert waiting.keys() | flying == {pod.uid for pod in self.pods.values()}
        assert not waiting.keys() & flying
        places: dict[GroupKey, set[Place]] = {}
        for queued in waiting.values():
            assert queued.pod is self.pods[queued.pod.name]
            root = self.case.tree.root_of(leaf(queued.pod.name[0]))
            place = self.queue.place_of(queued.uid)
            assert place is not None
            assert (place is Place.INCOMPLETE) == (root is None)
            if root is not None:
                places.setdefault(root, set()).add(place)
        assert all(len(found) == 1 for found in places.values()), places


GroupQueueMachine.TestCase.settings = examples(100, stateful_step_count=40)
test_laws = GroupQueueMachine.TestCase
