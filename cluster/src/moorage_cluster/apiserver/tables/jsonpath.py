"""The JSONPath of printer columns: fields, indices, slices, wildcards, unions, descent and filters.

A path is parsed once into steps; each turns the values found so far into those one step further. What is
missing is simply not found. A step that does not fit the values (an index beyond the end, a text compared
with a number) ends the search with nothing.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

Step: TypeAlias = Callable[[list[Any]], list[Any]]

_SKIPPED: Final = re.compile(r"[ @$]")
_FILTER: Final = re.compile(r"""\[\?\(((?:[^"')\n]|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')*)\)\]""")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_BRACKETS: Final = re.compile(r"\[([^\]\n]*)\]")
_FIELD: Final = re.compile(r"\.((?:\\.|[^\s.,\[\]$@{}\\])*)")
_DESCENT: Final = re.compile(r"\.(?=\.\w)|\.\.")  # in `..name` the second dot begins the field
_QUOTED: Final = re.compile(r""""((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'""")
_NUMBER: Final = re.compile(r"[+-]?[\d.]+", re.ASCII)
_WORD: Final = re.compile(r"\w[^\s.,\[\]$@{}]*")
_KEY: Final = re.compile(r"'([^']*)'")
_MAX_INDEX_LENGTH: Final = 60
_SLICE: Final = re.compile(r"(-?\d*)(?::(-?\d*))?(?::(-?\d*))?", re.ASCII)
_ESCAPE: Final = re.compile(r"\\(.)")

_COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class PathError(ValueError):
    """A text that is no path."""


class _MismatchError(Exception):
    """A step that does not fit the values found so far."""


class JsonPath:
    """A path into an object, ready to be followed."""

    def __init__(self, text: str) -> None:
        self._steps = _parse(text)

    def find(self, obj: Any) -> list[Any]:
        """All values at the path, in order."""
        try:
            return _follow(self._steps, [obj])
        except _MismatchError:
            return []


def _follow(steps: list[Step], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
    return values


def _parse(text: str) -> list[Step]:
    steps: list[Step] = []
    position = 0
    while position < len(text):
        for pattern, make in _GRAMMAR:
            if match := pattern.match(text, position):
                steps.extend(make(match))
                position = match.end()
                break
        else:
            raise PathError(f"{text!r} is not a path: {text[position:]!r} cannot be read")
    return steps


def _field(match: re.Match[str]) -> list[Step]:
    return [_every_value] if match[1] == "*" else [_field_step(_ESCAPE.sub(r"\1", match[1]))]


def _field_step(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _every_value(values: list[Any]) -> list[Any]:
    return [each for value in values for each in _parts(value)]


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _everything_below(values: list[Any]) -> list[Any]:
    found = []
    for value in values:
        if parts := _parts(value):
            found.append(value)
            found.extend(_everything_below(parts))
    return found


def _brackets(match: re.Match[str]) -> list[Step]:
    content = match[1]
    if "," in content:
        choices = [_parse(f"[{choice.strip(' ')}]") for choice in content.split(",")]
        return [lambda values: [each for choice in choices for each in _follow(choice, values)]]
    if key := _KEY.fullmatch(content):
        return _parse(f".{key[1]}")
    bounds = _SLICE.fullmatch(":" if content == "*" else content)
    if bounds is None or "-" in bounds.groups() or len(content) > _MAX_INDEX_LENGTH:
        raise PathError(f"invalid array index {content}")
    first, end, step = (int(bound) if bound else None for bound in bounds.groups())
    return [_slice_step(first or 0, end, 1 if step is None else step, single=bounds[2] is None)]


def _slice_step(first: int, end: int | None, step: int, *, single: bool) -> Step:
    def take(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list) or step < 1:
                raise _MismatchError
            size = len(value)
            start = first + size if first < 0 else first
            if single:
                stop = start + 1
            elif end is None:
                stop = size
            else:
                stop = end + size if end < 0 else end
            if start == stop:
                continue
            if not 0 <= start < stop <= size:
                raise _MismatchError
            found.extend(value[start:stop:step])
        return found

    return take


def _filter(match: re.Match[str]) -> list[Step]:
    comparison = _COMPARISON.fullmatch(match[1])
    if comparison is None:
        wanted = _parse(match[1])
        return [lambda values: [each for each in _elements(values) if _exists(wanted, each)]]
    left, right = _parse(comparison[1]), _parse(comparison[3])
    compare = _COMPARISONS.get(comparison[2])

    def passes(element: Any) -> bool:
        lefts, rights = _follow(left, [element]), _follow(right, [element])
        if not lefts or not rights:
            return False
        if compare is None or len(lefts) > 1 or len(rights) > 1:
            raise _MismatchError
        return _compared(lefts[0], rights[0], compare)

    return [lambda values: [each for each in _elements(values) if passes(each)]]


def _elements(values: list[Any]) -> list[Any]:
    if not all(isinstance(value, list) for value in values):
        raise _MismatchError
    return [each for value in values for each in value]


def _exists(path: list[Step], element: Any) -> bool:
    try:
        return bool(_follow(path, [element]))
    except _MismatchError:
        return True  # the path was followed in part


def _compared(left: Any, right: Any, compare: Callable[[Any, Any], Any]) -> bool:
    """Only like is compared with like: 1 is neither 1.0 nor true."""
    if type(left) is not type(right) or not isinstance(left, str | int | float):
        raise _MismatchError
    if isinstance(left, bool) and compare not in (operator.eq, operator.ne):
        raise _MismatchError
    return bool(compare(left, right))


def _quoted(match: re.Match[str]) -> list[Step]:
    content = match[1] if match[1] is not None else match[2]
    return _constant(_ESCAPE.sub(r"\1", content))


def _number(match: re.Match[str]) -> list[Step]:
    for kind in (int, float):
        try:
            return _constant(kind(match[0]))
        except ValueError:
            continue
    raise PathError(f"cannot parse number {match[0]}")


def _word(match: re.Match[str]) -> list[Step]:
    """Identifiers other than true and false have a meaning in kubectl's templates, but none in a column."""
    return _constant(match[0] == "true") if match[0] in ("true", "false") else [_never]


def _never(values: list[Any]) -> list[Any]:
    raise _MismatchError


def _constant(value: Any) -> list[Step]:
    return [lambda values: [value] * len(values)]


def _nothing(match: re.Match[str]) -> list[Step]:
    return []


def _descent(match: re.Match[str]) -> list[Step]:
    return [_everything_below]


_GRAMMAR: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], list[Step]]], ...]] = (
    (_SKIPPED, _nothing),
    (_FILTER, _filter),
    (_BRACKETS, _brackets),
    (_DESCENT, _descent),
    (_FIELD, _field),
    (_QUOTED, _quoted),
    (_NUMBER, _number),
    (_WORD, _word),
)
