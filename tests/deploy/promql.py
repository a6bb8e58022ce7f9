"""The metrics and labels that PromQL expressions name."""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\])*")"""
    r"|(?P<number>(?:\d+[smhdwy])+|\d+(?:\.\d+)?(?:e-?\d+)?|\$__\w+)"
    r"|(?P<word>[A-Za-z_][\w:]*)"
    r"|(?P<sign>=~|!~|!=|==|>=|<=|[-+*/^%<>=(){}\[\],:])"
    r"|(?P<space>\s+)"
)
_LABEL_LISTS = {"by", "without", "on", "ignoring", "group_left", "group_right"}
_OPERATORS = {"and", "or", "unless", "offset", "bool", "atan2"}
FUNCTIONS = {
    "absent",
    "changes",
    "histogram_quantile",
    "increase",
    "max",
    "max_over_time",
    "rate",
    "sum",
}
"""Functions and aggregations that are used."""


class Named(NamedTuple):
    """What an expression names: metrics with the labels in their selectors, and labels by which it groups."""

    selected: list[tuple[str, frozenset[str]]]
    grouped: frozenset[str]

    @property
    def metrics(self) -> set[str]:
        return {metric for metric, _ in self.selected}


class PromQLError(ValueError):
    """This is no PromQL, or not of the kind that is known here."""


def named(expression: str) -> Named:
    """The metrics and labels of an expression."""
    tokens = _tokens(expression)
    selected: list[tuple[str, frozenset[str]]] = []
    grouped: set[str] = set()
    while tokens:
        kind, text = tokens.pop(0)
        following = tokens[0][1] if tokens else ""
        if kind != "word" or text in _OPERATORS:
            continue
        if text in _LABEL_LISTS:
            grouped |= _labels(tokens, "(", ")")
        elif following == "(" or (tokens and tokens[0][1] in _LABEL_LISTS and text in FUNCTIONS):
            if text not in FUNCTIONS:
                raise PromQLError(f"there is no function {text}")
        else:
            selected.append((text, frozenset(_labels(tokens, "{", "}") if following == "{" else ())))
    return Named(selected, frozenset(grouped))


def _tokens(expression: str) -> list[tuple[str, str]]:
    found, end = [], 0
    while end < len(expression):
        match = _TOKEN.match(expression, end)
        if match is None:
            raise PromQLError(f"{expression[end:]!r} is no PromQL")
        end = match.end()
        if match.lastgroup != "space":
            found.append((str(match.lastgroup), match[0]))
    return found


def _labels(tokens: list[tuple[str, str]], begin: str, end: str) -> set[str]:
    """The words up to the end of a selector or of a list of labels."""
    if tokens.pop(0)[1] != begin:
        raise PromQLError(f"{begin} is missing")
    found = set()
    while (token := tokens.pop(0))[1] != end:
        if token[0] == "word":
            found.add(token[1])
    return found
