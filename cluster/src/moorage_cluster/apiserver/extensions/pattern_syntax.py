"""The grammar of patterns in schemas: RE2, which is what users of Kubernetes write and expect.

Text becomes a small tree; `patterns` makes a matcher of it. What RE2 does not support (look-around,
backreferences) is rejected here with Go's messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from moorage_cluster.apiserver.extensions.pattern_classes import (
    ANY,
    LAST,
    NOT_NEWLINE,
    PERL,
    POSIX,
    Ranges,
    categories,
    folded,
    merged,
    negated,
)


class PatternError(ValueError):
    """A pattern that RE2 does not accept."""

    def __init__(self, problem: str, culprit: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{culprit}`")


class At(Enum):
    """A condition on a position."""

    TEXT_START = auto()
    TEXT_END = auto()
    LINE_START = auto()
    LINE_END = auto()
    WORD_EDGE = auto()
    NO_WORD_EDGE = auto()


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Position:
    """A condition that consumes no character."""

    at: At


@dataclass(frozen=True, slots=True)
class Sequence:
    """A concatenation; without parts, the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """An alternation."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A repetition; `most` None: unbounded."""

    part: Node
    least: int
    most: int | None


Node: TypeAlias = Chars | Position | Sequence | Alternation | Repeat

_MAX_REPEATS: Final = 1000
_MAX_DEPTH: Final = 150


_POSITIONS: Final = {
    "A": At.TEXT_START,
    "z": At.TEXT_END,
    "b": At.WORD_EDGE,
    "B": At.NO_WORD_EDGE,
}
_CONTROLS: Final = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}


@dataclass(frozen=True, slots=True)
class _Flags:
    fold_case: bool = False
    lines: bool = False
    dot_all: bool = False


def parse(text: str) -> Node:
    """A pattern's tree; PatternError if it is invalid."""
    parser = _Parser(text)
    node = parser.choice(_Flags(), depth=0)
    if parser.here < len(text):
        raise PatternError("unexpected )", text)
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.here = 0

    def next_is(self, text: str) -> bool:
        return self.text.startswith(text, self.here)

    def choice(self, flags: _Flags, depth: int) -> Node:
        """Parse up to the end, or to the closing parenthesis of the group, which is not consumed."""
        if depth > _MAX_DEPTH:
            raise PatternError("expression nests too deeply", self.text)
        options: list[Node] = []
        parts: list[Node] = []
        while self.here < len(self.text) and not self.next_is(")"):
            if self.next_is("|"):
                self.here += 1
                options.append(Sequence(tuple(parts)))
                parts = []
                continue
            changed = self.flag_change(flags)
            if changed is not None:
                flags = changed
                continue
            parts.extend(self.repeated(flags, depth))
        options.append(Sequence(tuple(parts)))
        return options[0] if len(options) == 1 else Alternation(tuple(options))

    def flag_change(self, flags: _Flags) -> _Flags | None:
        """`(?i)`: other flags for the rest of the group."""
        start = self.here
        if not self.next_is("(?"):
            return None
        changed, end = self.flags_at(start + 2, flags)
        if changed is not None and self.text.startswith(")", end):
            self.here = end + 1
            return changed
        return None

    def flags_at(self, at: int, flags: _Flags) -> tuple[_Flags | None, int]:
        values = {"i": flags.fold_case, "m": flags.lines, "s": flags.dot_all}
        on = True
        seen = 0
        while at < len(self.text):
            letter = self.text[at]
            if letter == "-" and on:
                on, seen = False, 0
            elif letter == "U":
                seen += 1  # greediness does not affect whether there is a match
            elif letter in values:
                values[letter] = on
                seen += 1
            else:
                break
            at += 1
        if not on and not seen:
            return None, at
        return _Flags(values["i"], values["m"], values["s"]), at

    def repeated(self, flags: _Flags, depth: int) -> list[Node]:
        parts = self.atom(flags, depth)
        times_at = self.here
        times = self.times()
        if times is None:
            return parts
        if not parts:
            raise PatternError("missing argument to repetition operator", self.text[times_at : self.here])
        if self.next_is("?"):
            self.here += 1
        again_at = self.here
        if self.times() is not None:
            raise PatternError("invalid nested repetition operator", self.text[times_at : self.here])
        self.here = again_at
        least, most = times
        if max(least, most or 0) > _MAX_REPEATS or (most is not None and most < least):
            raise PatternError("invalid repeat count", self.text[times_at : self.here])
        return [*parts[:-1], Repeat(parts[-1], least, most)]

    def times(self) -> tuple[int, int | None] | None:
        if self.here >= len(self.text):
            return None
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self.text[self.here])
        if simple is not None:
            self.here += 1
            return simple
        if not self.next_is("{"):
            return None
        end = self.text.find("}", self.here)
        least, comma, most = self.text[self.here + 1 : max(end, 0)].partition(",")
        if not _is_count(least) or not (_is_count(most) or (not most)):
            return None  # braces without a valid count are literals
        self.here = end + 1
        if not comma:
            return int(least), int(least)
        return int(least), int(most) if most else None

    def atom(self, flags: _Flags, depth: int) -> list[Node]:
        letter = self.text[self.here]
        if letter == "(":
            return [self.group(flags, depth)]
        if letter == "[":
            return [Chars(self.char_class(flags))]
        if letter == "\\":
            return self.escaped(flags)
        if letter in "*+?":
            raise PatternError("missing argument to repetition operator", letter)
        self.here += 1
        if letter == ".":
            return [Chars(ANY if flags.dot_all else NOT_NEWLINE)]
        if letter == "^":
            return [Position(At.LINE_START if flags.lines else At.TEXT_START)]
        if letter == "$":
            return [Position(At.LINE_END if flags.lines else At.TEXT_END)]
        return [_one(ord(letter), flags)]

    def group(self, flags: _Flags, depth: int) -> Node:
        start = self.here
        self.here += 1
        if self.next_is("?"):
            flags = self.group_opening(start, flags)
        inner = self.choice(flags, depth + 1)
        if not self.next_is(")"):
            raise PatternError("missing closing )", self.text)
        self.here += 1
        return inner

    def group_opening(self, start: int, flags: _Flags) -> _Flags:
        for opening in ("?P<", "?<"):
            if self.next_is(opening):
                end = self.text.find(">", self.here)
                name = self.text[self.here + len(opening) : max(end, 0)]
                if not name or not all(letter.isalnum() or letter == "_" for letter in name):
                    if opening == "?<" and self.text[self.here + 2 : self.here + 3] in ("=", "!"):
                        raise PatternError("invalid or unsupported Perl syntax", "(?<")
                    culprit = self.text[start : end + 1] if end >= 0 else self.text[start:]
                    raise PatternError("invalid named capture", culprit)
                self.here = end + 1
                return flags
        changed, end = self.flags_at(self.here + 1, flags)
        if changed is None or not self.text.startswith(":", end):
            culprit = self.text[start : end + 1]
            if end >= len(self.text):
                raise PatternError("missing closing )", self.text)
            raise PatternError("invalid or unsupported Perl syntax", culprit)
        self.here = end + 1
        return changed

    def escaped(self, flags: _Flags) -> list[Node]:
        letter = self.text[self.here + 1 : self.here + 2]
        if letter in _POSITIONS:
            self.here += 2
            return [Position(_POSITIONS[letter])]
        if letter == "Q":
            end = self.text.find("\\E", self.here + 2)
            literal = self.text[self.here + 2 : end if end >= 0 else None]
            self.here = end + 2 if end >= 0 else len(self.text)
            return [_one(ord(each), flags) for each in literal]
        several = self.named_class()
        if several is not None:
            return [Chars(folded(several) if flags.fold_case else several)]
        return [_one(self.escaped_char(), flags)]

    def named_class(self) -> Ranges | None:
        """`\\d`, `\\pL`, `\\p{Lu}`."""
        letter = self.text[self.here + 1 : self.here + 2]
        if letter in PERL:
            self.here += 2
            return PERL[letter]
        if letter not in ("p", "P"):
            return None
        start = self.here
        name = self.text[start + 2 : start + 3]
        self.here = start + 3
        if name == "{":
            end = self.text.find("}", start)
            name = self.text[start + 3 : max(end, 0)]
            self.here = end + 1
        others = (letter == "P") != name.startswith("^")
        ranges = ANY if name.lstrip("^") == "Any" else categories().get(name.lstrip("^"))
        if ranges is None or self.here == 0:
            raise PatternError("invalid character class range", self.text[start : self.here or None])
        return negated(ranges) if others else ranges

    def escaped_char(self) -> int:
        start = self.here
        letter = self.text[start + 1 : start + 2]
        if not letter:
            raise PatternError("trailing backslash at end of expression", "")
        self.here += 2
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter in "01234567":
            digits = letter
            while len(digits) < 3 and self.text[self.here : self.here + 1] in tuple("01234567"):
                digits += self.text[self.here]
                self.here += 1
            if letter == "0" or len(digits) > 1:
                return int(digits, 8)
        elif letter == "x":
            return self.hexadecimal(start)
        elif letter.isascii() and not letter.isalnum():
            return ord(letter)
        raise PatternError("invalid escape sequence", self.text[start : start + 2])

    def hexadecimal(self, start: int) -> int:
        if self.next_is("{"):
            end = self.text.find("}", self.here)
            digits = self.text[self.here + 1 : max(end, 0)]
            after = end + 1
        else:
            digits = self.text[self.here : self.here + 2]
            after = self.here + 2
        is_hexadecimal = digits and all(digit in "0123456789abcdefABCDEF" for digit in digits)
        if not is_hexadecimal or (not self.next_is("{") and len(digits) < 2) or int(digits, 16) > LAST:
            raise PatternError("invalid escape sequence", self.text[start : start + 2])
        self.here = after
        return int(digits, 16)

    def char_class(self, flags: _Flags) -> Ranges:
        start = self.here
        self.here += 1
        others = self.next_is("^")
        self.here += others
        ranges: list[tuple[int, int]] = []
        first = True
        while first or not self.next_is("]"):
            if self.here >= len(self.text):
                raise PatternError("missing closing ]", self.text[start:])
            first = False
            several = self.posix() or (self.named_class() if self.next_is("\\") else None)
            if several is not None:
                ranges.extend(several)
            else:
                ranges.append(self.class_range(start))
        self.here += 1
        listed = merged(ranges)
        if flags.fold_case:
            listed = folded(listed)
        return negated(listed) if others else listed

    def posix(self) -> Ranges | None:
        if not self.next_is("[:"):
            return None
        end = self.text.find(":]", self.here + 2)
        if end < 0:
            return None
        name = self.text[self.here + 2 : end]
        ranges = POSIX.get(name.removeprefix("^"))
        if ranges is None:
            raise PatternError("invalid character class range", self.text[self.here : end + 2])
        self.here = end + 2
        return negated(ranges) if name.startswith("^") else ranges

    def class_range(self, class_start: int) -> tuple[int, int]:
        start = self.here
        low = self.class_char(class_start)
        if not self.next_is("-") or self.text[self.here + 1 : self.here + 2] in ("]", ""):
            return low, low
        self.here += 1
        high = self.class_char(class_start)
        if high < low:
            raise PatternError("invalid character class range", self.text[start : self.here])
        return low, high

    def class_char(self, class_start: int) -> int:
        if self.here >= len(self.text):
            raise PatternError("missing closing ]", self.text[class_start:])
        if self.next_is("\\"):
            return self.escaped_char()
        self.here += 1
        return ord(self.text[self.here - 1])


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 9


def _one(point: int, flags: _Flags) -> Chars:
    ranges = ((point, point),)
    return Chars(folded(ranges) if flags.fold_case else ranges)
