"""Label and field selectors in query strings: `app in (a,b),tier!=web`, `spec.nodeName=n1`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from moorage.api.selectors import Operator, Requirement, SelectorError, requirement
from moorage.api.text import quoted
from moorage.api.text_cache import cached_by_text, shared_text
from moorage.apimachinery import errors

_TOKEN = re.compile(r"\s*(?:(?P<sign>!=|==|=|<|>|!|\(|\)|,)|(?P<word>[^\s!=<>(),]+))")
_SIGNS = {"=": Operator.IN, "==": Operator.IN, "!=": Operator.NOT_IN, "<": Operator.LT, ">": Operator.GT}
_WORDS = {"in": Operator.IN, "notin": Operator.NOT_IN}

LabelSelector = tuple[Requirement, ...]


@cached_by_text(count=4096)
def parse_label_selector(text: str) -> LabelSelector:
    """The requirements of a label selector; ApiError (400) if it is invalid."""
    try:
        return tuple(_Parser(text).requirements())
    except SelectorError as error:
        raise errors.bad_request(
            f"unable to parse requirement: {error.path + ': ' if error.path else ''}{error.reason}"
        ) from None


class _Parser:
    """Parses a label selector from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        position = 0
        stripped = text.strip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None:
                raise SelectorError("", f"found {quoted(stripped[position:])}, expected: identifier")
            self._tokens.append(match["sign"] or match["word"])
            position = match.end()
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while self._peek():
            found.append(self._requirement())
            if self._peek() and self._take() != ",":
                raise SelectorError(
                    "", f"found '{self._tokens[self._at - 1]}', expected: ',' or 'end of string'"
                )
            if not self._peek() and self._tokens[-1] == ",":
                raise SelectorError("", "found '', expected: identifier after ','")
        return found

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._take()
        key = self._take()
        if not key or key in "!=<>(),":
            raise SelectorError("", f"found '{key}', expected: !, identifier, or 'end of string'")
        sign = self._peek()
        if absent or sign in ("", ","):
            if absent and sign not in ("", ","):
                raise SelectorError("", f"found '{sign}', expected: ',' or 'end of string'")
            return requirement(key, Operator.DOES_NOT_EXIST if absent else Operator.EXISTS, [])
        self._take()
        if sign in _WORDS:
            return requirement(key, _WORDS[sign], self._values())
        if sign not in _SIGNS:
            raise SelectorError("", f"found '{sign}', expected: in, notin, =, ==, !=, gt, lt")
        value = "" if self._peek() in ("", ",") else self._take()
        if value and value in "!=<>()":
            raise SelectorError("", f"found '{value}', expected: identifier")
        return requirement(key, _SIGNS[sign], [value])

    def _values(self) -> list[str]:
        if (token := self._take()) != "(":
            raise SelectorError("", f"found '{token}' expected: '('")
        values: list[str] = []
        expects_value = True
        while (token := self._take()) != ")":
            if not token or token in "!=<>(" or (token != "," and not expects_value):
                raise SelectorError("", f"found '{token}', expected: ',', ')' or identifier")
            if token == ",":
                if expects_value:
                    values.append("")
                expects_value = True
            else:
                values.append(token)
                expects_value = False
        if expects_value:
            values.append("")
        return values


def matches_labels(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether labels meet every requirement."""
    return all(one.matches(labels) for one in selector)


class FieldTerm(NamedTuple):
    """One condition on one field."""

    field: str
    equals: bool
    value: str


FieldSelector = tuple[FieldTerm, ...]

_FIELD_TERM = re.compile(r"(?P<field>[^=!\\]+)(?P<sign>!=|==|=)(?P<value>.*)", re.DOTALL)
_COMMA = re.compile(r"(?<!\\),")
_ESCAPED = re.compile(r"\\([\\,=])")


@cached_by_text(count=4096)
def parse_field_selector(text: str) -> FieldSelector:
    """The conditions of a field selector; ApiError (400) if it is invalid."""
    terms = []
    for part in _COMMA.split(text):
        if not part:
            continue
        match = _FIELD_TERM.fullmatch(part)
        if match is None:
            raise errors.bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        value = _ESCAPED.sub(r"\1", match["value"])
        terms.append(FieldTerm(match["field"], match["sign"] != "!=", value))
    return tuple(terms)


class FieldValues(msgspec.Struct, frozen=True, gc=False):
    """The selectable fields of one object.

    To save memory, objects of a kind share the names of fields, and all objects share equal values.
    """

    positions: dict[str, int]
    values: tuple[str, ...]

    @classmethod
    def of(cls, selectable: Mapping[str, str]) -> FieldValues:
        """Fields by their names."""
        return cls(_positions(tuple(selectable)), tuple(map(shared_text, selectable.values())))

    def get(self, name: str) -> str:
        """The value of a field; empty if there is none of this name."""
        position = self.positions.get(name)
        return "" if position is None else self.values[position]


@lru_cache(maxsize=1024)
def _positions(names: tuple[str, ...]) -> dict[str, int]:
    return {name: position for position, name in enumerate(names)}


NO_FIELDS: Final = FieldValues.of({})


def matches_fields(selector: FieldSelector, fields: FieldValues, namespace: str, name: str) -> bool:
    """Whether an object's fields meet every condition."""
    for term in selector:
        if term.field == "metadata.name":
            value = name
        elif term.field == "metadata.namespace":
            value = namespace
        else:
            value = fields.get(term.field)
        if (value == term.value) is not term.equals:
            return False
    return True
