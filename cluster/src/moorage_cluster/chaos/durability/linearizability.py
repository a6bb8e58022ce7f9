"""Whether the answers about each object could be those of one object that does one call after another.

The search of Wing and Gong: take one call after another of those that began before any other ended, and go
back when an answer does not fit. States that were reached with the same calls done are not looked at again. A
call without an answer may take effect at any time after it began, or never.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from moorage_cluster.chaos.durability.history import Call

State = tuple[str, int] | None
"""Content and version of an object, 0 if that is not known; None: it does not exist."""

_OK: Final = (200, 201)
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


def after(state: State, call: Call) -> tuple[State] | tuple[()]:
    """The state after a call, if its answer fits."""
    if call.verb == "get":
        return _after_read(state, call)
    if call.code == 0:
        return (_written(call, 0) if _takes_effect(state, call) else state,)
    if call.code in _OK:
        # An update fits a version that is not known, too: it may be the expected one.
        return (_written(call, call.version),) if _takes_effect(state, call) else ()
    return (state,) if _is_refused(state, call) else ()


def _after_read(state: State, call: Call) -> tuple[State] | tuple[()]:
    if call.code == 0:
        return (state,)
    if state is None or not call.content:
        return (state,) if state is None and not call.content else ()
    content, version = state
    return ((content, call.version),) if content == call.content and version in (0, call.version) else ()


def _takes_effect(state: State, call: Call) -> bool:
    if call.verb == "create":
        return state is None
    return state is not None and (not call.expected or state[1] in (0, call.expected))


def _written(call: Call, version: int) -> State:
    return None if call.verb == "delete" else (call.content, version)


def _is_refused(state: State, call: Call) -> bool:
    if call.code == _NOT_FOUND:
        return state is None and call.verb != "create"
    if call.code != _CONFLICT or state is None:
        return False
    return call.verb == "create" or (call.expected > 0 and state[1] != call.expected)


def is_linearizable(calls: Sequence[Call]) -> bool:
    """Whether calls about one object, which did not exist before, can be put in an order."""
    calls = sorted((each for each in calls if each.verb != "get" or each.code), key=_begin)
    everything = (1 << len(calls)) - 1
    answered = sum(1 << at for at, call in enumerate(calls) if call.code)
    seen: set[tuple[int, State]] = set()
    todo: list[tuple[int, State]] = [(0, None)]
    while todo:
        done, state = todo.pop()
        if done & answered == answered:
            return True
        if (done, state) in seen:
            continue
        seen.add((done, state))
        for at in reversed(_next(calls, everything & ~done)):
            todo += [(done | 1 << at, new) for new in after(state, calls[at])]
    return False


def _next(calls: Sequence[Call], left: int) -> list[int]:
    """The calls that may be next: those that began before any other of those left ended; answered first."""
    found: list[int] = []
    earliest = float("inf")
    while left:
        at = (left & -left).bit_length() - 1
        if calls[at].begun_at > earliest:
            break
        found.append(at)
        earliest = min(earliest, calls[at].ended_at)
        left &= left - 1
    return sorted(found, key=lambda at: calls[at].ended_at)


def _begin(call: Call) -> float:
    return call.begun_at


def not_linearizable(calls: Iterable[Call]) -> list[str]:
    """The keys whose calls cannot be put in an order."""
    by_key: defaultdict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_key[call.key].append(call)
    return [key for key, each in by_key.items() if not is_linearizable(each)]


def versions_out_of_order(calls: Iterable[Call]) -> list[str]:
    """Writes whose version is not above that of a write, of any object, that had ended before they began."""
    writes = [call for call in calls if call.is_acknowledged_write]
    ended = sorted(writes, key=lambda call: call.ended_at)
    problems: list[str] = []
    highest, at = 0, 0
    for call in sorted(writes, key=_begin):
        while ended[at].ended_at < call.begun_at:
            highest = max(highest, ended[at].version)
            at += 1
        if call.version <= highest:
            problems.append(f"{call.verb} of {call.key} got version {call.version}, after {highest}")
    return problems
