"""Matching of patterns in time linear in the text, for any pattern: no schema can stall the server.

A pattern becomes a nondeterministic automaton, simulated with all its states at once. The sets of states that
occur are cached with their transitions: a pattern in use costs one lookup per character. Where every
character leads to a new set of many states, the work for one text is bounded, and the text rejected.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from moorage_cluster.apiserver.extensions.pattern_classes import Ranges
from moorage_cluster.apiserver.extensions.pattern_syntax import (
    Alternation,
    At,
    Chars,
    Node,
    PatternError,
    Position,
    Sequence,
    parse,
)

_MAX_STEPS: Final = 50_000
_MAX_HELD_STATES: Final = 500_000
"""Maximum number of states in all cached sets."""
_MAX_WORK: Final = 1_000_000
"""Maximum steps of the automaton for one text: about a second."""


class TooMuchWorkError(Exception):
    """The work for a long text and a large pattern exceeds the limit."""


class _Consume(NamedTuple):
    ranges: Ranges
    then: int


class _Fork(NamedTuple):
    targets: tuple[int, ...]


class _Assert(NamedTuple):
    at: At
    then: int


_Step: TypeAlias = _Consume | _Fork | _Assert | None
"""None: the pattern has matched."""


class _Kind(IntEnum):
    """The class of a neighbouring character, for conditions on positions."""

    NONE = 0
    NEWLINE = 1
    WORD = 2
    OTHER = 3


def _kind(letter: str) -> _Kind:
    if letter == "\n":
        return _Kind.NEWLINE
    return _Kind.WORD if letter == "_" or (letter.isascii() and letter.isalnum()) else _Kind.OTHER


def _holds(at: At, before: _Kind, after: _Kind) -> bool:
    match at:
        case At.TEXT_START:
            return before is _Kind.NONE
        case At.TEXT_END:
            return after is _Kind.NONE
        case At.LINE_START:
            return before in (_Kind.NONE, _Kind.NEWLINE)
        case At.LINE_END:
            return after in (_Kind.NONE, _Kind.NEWLINE)
        case At.WORD_EDGE:
            return (before is _Kind.WORD) != (after is _Kind.WORD)
        case At.NO_WORD_EDGE:
            return (before is _Kind.WORD) == (after is _Kind.WORD)


@dataclass(slots=True, eq=False)
class _Situation:
    """The states after some text, before following the steps that consume no character."""

    states: frozenset[int]
    before: _Kind
    next: dict[str, _Situation | None] = field(default_factory=dict)
    """The transitions by character; None: a match."""
    matches_at_end: bool | None = None


_UNSEEN: Final = _Situation(frozenset(), _Kind.NONE)


class Pattern:
    """A compiled pattern."""

    def __init__(self, text: str) -> None:
        self._program: list[_Step] = [None]
        try:
            self._entry = self._compile(parse(text), 0)
        except _TooLargeError:
            raise PatternError("expression too large", text) from None
        self._start = _Situation(frozenset(), _Kind.NONE)
        self._remembered: dict[tuple[frozenset[int], _Kind], _Situation] = {}
        self._held_states = 0
        self._work = 0

    def occurs_in(self, text: str) -> bool:
        """Whether some part of the text matches; TooMuchWorkError if that takes too long to find out."""
        now = self._start
        self._work = 0
        for letter in text:
            following = now.next.get(letter, _UNSEEN)
            if following is _UNSEEN:
                following = self._advance(now, letter)
            if following is None:
                return True
            now = following
        if now.matches_at_end is None:
            now.matches_at_end = self._closure(now, _Kind.NONE) is None
        return now.matches_at_end

    def _advance(self, now: _Situation, letter: str) -> _Situation | None:
        kind = _kind(letter)
        waiting = self._closure(now, kind)
        if waiting is None:
            now.next[letter] = None
            return None
        states = _reached(waiting, ord(letter))
        if self._held_states > _MAX_HELD_STATES:
            self._remembered.clear()
            self._held_states = 0
            self._start.next.clear()
            now = _Situation(now.states, now.before)
        following = self._remembered.get((states, kind))
        if following is None:
            following = self._remembered[states, kind] = _Situation(states, kind)
            self._held_states += 1 + len(states)
        now.next[letter] = following
        return following

    def _closure(self, now: _Situation, after: _Kind) -> list[_Consume] | None:
        """The steps that consume a character; None: the pattern has matched already."""
        waiting: list[_Consume] = []
        todo = [self._entry, *now.states]  # a match may begin anywhere
        seen = set(todo)
        while todo:
            step = self._program[todo.pop()]
            if step is None:
                return None
            if isinstance(step, _Consume):
                waiting.append(step)
                continue
            if isinstance(step, _Fork):
                targets = step.targets
            else:
                targets = (step.then,) if _holds(step.at, now.before, after) else ()
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        self._work += len(seen)
        if self._work > _MAX_WORK:
            raise TooMuchWorkError
        return waiting

    def _add(self, step: _Step) -> int:
        if len(self._program) >= _MAX_STEPS:
            raise _TooLargeError
        self._program.append(step)
        return len(self._program) - 1

    def _compile(self, node: Node, then: int) -> int:
        """The first step for matching `node` and continuing at `then`."""
        if isinstance(node, Chars):
            return self._add(_Consume(node.ranges, then))
        if isinstance(node, Position):
            return self._add(_Assert(node.at, then))
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                then = self._compile(part, then)
            return then
        if isinstance(node, Alternation):
            return self._add(_Fork(tuple(self._compile(option, then) for option in node.options)))
        if node.most is None:
            loop = self._add(None)
            self._program[loop] = _Fork((self._compile(node.part, loop), then))
            begin = loop
        else:
            begin = then
            for _ in range(node.most - node.least):
                begin = self._add(_Fork((self._compile(node.part, begin), then)))
        for _ in range(node.least):
            begin = self._compile(node.part, begin)
        return begin


def _reached(waiting: Iterable[_Consume], point: int) -> frozenset[int]:
    """The states reached by a character; repetitions of a part share their ranges, which are tested once."""
    fits: dict[int, bool] = {}
    states = set()
    for ranges, then in waiting:
        place = id(ranges)
        if place not in fits:
            fits[place] = any(low <= point <= high for low, high in ranges)
        if fits[place]:
            states.add(then)
    return frozenset(states)


class _TooLargeError(Exception):
    """A pattern with too many steps because of its repetitions."""


@lru_cache(maxsize=4096)
def compiled(text: str) -> Pattern:
    """A compiled pattern; PatternError if RE2 would not accept it."""
    return Pattern(text)
