"""The checkers of histories: a plain search agrees, and histories that could not be are rejected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage_cluster.chaos.durability.history import Call, Event, History, Session, Verb
from moorage_cluster.chaos.durability.linearizability import (
    State,
    after,
    is_linearizable,
    not_linearizable,
    versions_out_of_order,
)
from moorage_cluster.chaos.durability.watch_checks import watch_problems


def call(verb: Verb, begun_at: float, ended_at: float, code: int = 200, **fields: object) -> Call:
    return Call(verb, "a", begun_at, ended_at=ended_at, code=code, **fields)  # type: ignore[arg-type]


def lost(verb: Verb, begun_at: float, **fields: object) -> Call:
    return call(verb, begun_at, math.inf, 0, **fields)


MADE = call("create", 0, 1, content="x", version=1)

POSSIBLE: dict[str, list[Call]] = {
    "one after another": [
        MADE,
        call("get", 2, 3, content="x", version=1),
        call("update", 4, 5, content="y", expected=1, version=2),
        call("delete", 6, 7, expected=2),
        call("get", 8, 9, 404),
    ],
    "a read during a write sees either": [
        MADE,
        call("update", 2, 9, content="y", expected=1, version=2),
        call("get", 3, 4, content="x", version=1),
        call("get", 5, 6, content="y", version=2),
    ],
    "a write without an answer that happened": [
        MADE,
        lost("update", 2, content="y", expected=1),
        call("get", 3, 4, content="x", version=1),
        call("get", 5, 6, content="y", version=2),
    ],
    "a write without an answer that did not happen": [
        MADE,
        lost("delete", 2, expected=1),
        call("get", 9, 10, content="x", version=1),
    ],
    "of two updates of one version one is refused": [
        MADE,
        call("update", 2, 5, content="y", expected=1, version=2),
        call("update", 2, 5, 409, content="z", expected=1),
    ],
    "an update of a version that is only known from a watch": [
        lost("create", 0, content="x"),
        call("update", 2, 3, content="y", expected=1, version=2),
    ],
    "a second creation is refused": [MADE, call("create", 2, 3, 409, content="y")],
    "a patch of nothing": [call("patch", 0, 1, 404, content="y")],
}
IMPOSSIBLE: dict[str, list[Call]] = {
    "a lost write": [MADE, call("get", 2, 3, 404)],
    "a stale read": [
        MADE,
        call("update", 2, 3, content="y", expected=1, version=2),
        call("get", 4, 5, content="x", version=1),
    ],
    "reads that go back": [
        MADE,
        call("update", 2, 9, content="y", expected=1, version=2),
        call("get", 3, 4, content="y", version=2),
        call("get", 5, 6, content="x", version=1),
    ],
    "two updates of one version": [
        MADE,
        call("update", 2, 5, content="y", expected=1, version=2),
        call("update", 2, 5, content="z", expected=1, version=3),
    ],
    "a write without an answer that happened and then did not": [
        MADE,
        lost("update", 2, content="y", expected=1),
        call("get", 3, 4, content="y", version=2),
        call("get", 5, 6, content="x", version=1),
    ],
    "a deleted object is back": [
        MADE,
        call("delete", 2, 3, expected=1),
        call("get", 4, 5, content="x", version=1),
    ],
    "an update that is refused without a reason": [MADE, call("update", 2, 3, 409, content="y", expected=1)],
    "the same object at another version": [MADE, call("get", 2, 3, content="x", version=5)],
    "two creations": [MADE, call("create", 2, 3, content="y", version=2)],
    "what was never written": [MADE, call("get", 2, 3, content="z", version=1)],
    "a write without an answer before it began": [
        call("get", 0, 1, content="x", version=1),
        lost("create", 2, content="x"),
    ],
    "an error of the server": [MADE, call("patch", 2, 3, 500, content="y")],
}


@pytest.mark.parametrize("calls", POSSIBLE.values(), ids=POSSIBLE)
def test_possible(calls: list[Call]) -> None:
    assert is_linearizable(calls)


@pytest.mark.parametrize("calls", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_impossible(calls: list[Call]) -> None:
    assert not is_linearizable(calls)
    assert not_linearizable(calls) == ["a"]


def fits(order: Sequence[Call]) -> bool:
    state: State = None
    for at, each in enumerate(order):
        if any(later.ended_at < each.begun_at for later in order[at + 1 :]):
            return False
        states = after(state, each)
        if not states:
            return False
        (state,) = states
    return True


def is_linearizable_plainly(calls: Sequence[Call]) -> bool:
    answered = [each for each in calls if each.code]
    unanswered = [each for each in calls if not each.code]
    return any(
        fits(order)
        for chosen in range(1 << len(unanswered))
        for order in permutations(answered + [each for at, each in enumerate(unanswered) if chosen >> at & 1])
    )


VERBS: tuple[Verb, ...] = ("create", "update", "patch", "delete", "get")


@st.composite
def calls_about_one_object(draw: st.DrawFn) -> list[Call]:
    calls = []
    for number in range(draw(st.integers(1, 5))):
        verb = draw(st.sampled_from(VERBS))
        begun = draw(st.integers(0, 6))
        version = draw(st.integers(1, 3))
        code = draw(st.sampled_from((0, 200, 200, 200, 404, 409)))
        each = Call(
            verb, "a", begun, content=draw(st.sampled_from("xy")) if verb == "get" else "xyz"[version - 1]
        )
        if verb in ("update", "delete"):
            each.expected = draw(st.integers(1, 3))
        if code:
            each.code, each.ended_at = code, begun + draw(st.integers(0, 4)) + number / 10
        if code == 200 and verb != "delete":
            each.version = version
        elif verb == "get":
            each.content = ""
        calls.append(each)
    return calls


@given(calls_about_one_object())
def test_a_plain_search_agrees(calls: list[Call]) -> None:
    assert is_linearizable(calls) == is_linearizable_plainly(calls)


def test_versions_grow() -> None:
    other = Call("create", "b", 2, content="y", ended_at=3, code=200, version=2)
    assert versions_out_of_order([MADE, other]) == []
    other.version = 1
    assert versions_out_of_order([MADE, other]) == ["create of b got version 1, after 1"]
    other.begun_at = 1
    assert versions_out_of_order([MADE, other]) == []


# -- watchers

WRITES = [
    Call("create", "a", 0, content="x", ended_at=1, code=200, version=2),
    Call("create", "b", 2, content="y", ended_at=3, code=200, version=3),
    Call("update", "a", 4, content="z", expected=2, ended_at=5, code=200, version=4),
    Call("delete", "b", 6, expected=3, ended_at=7, code=200),
    Call("create", "c", 8, content="w", ended_at=9, code=200, version=6),
]
EVENTS = [
    Event("ADDED", "b", 3, "y"),
    Event("MODIFIED", "a", 4, "z"),
    Event("DELETED", "b", 5, "y"),
    Event("ADDED", "c", 6, "w"),
]


def watched(events: list[Event], listed: dict[str, tuple[int, str]] | None = None) -> list[str]:
    session = Session(1.5, 1.6, 2, {"a": (2, "x")} if listed is None else listed, events)
    return list(watch_problems(History(WRITES, [session])))


def test_a_watcher_that_saw_everything() -> None:
    assert watched(EVENTS) == []
    for count in range(len(EVENTS)):
        assert watched(EVENTS[:count]) == []


def test_a_missing_event() -> None:
    for missing in range(len(EVENTS) - 1):
        assert watched([*EVENTS[:missing], *EVENTS[missing + 1 :]]), EVENTS[missing]


def test_a_repeated_event() -> None:
    for event in EVENTS:
        at = EVENTS.index(event)
        assert watched([*EVENTS[: at + 1], *EVENTS[at:]])
        assert watched([*EVENTS, event])


def test_events_in_another_order() -> None:
    assert watched([EVENTS[1], EVENTS[0], *EVENTS[2:]])


def test_another_content() -> None:
    assert watched([EVENTS[0], Event("MODIFIED", "a", 4, "x"), *EVENTS[2:]])
    assert watched(EVENTS, {"a": (2, "z")})


def test_a_list_that_is_behind() -> None:
    session = Session(5.5, 5.6, 4, {"a": (2, "x"), "b": (3, "y")})
    assert list(watch_problems(History(WRITES, [session]))) == [
        "a was listed at version 2, after 4 was acknowledged"
    ]
