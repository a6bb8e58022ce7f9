"""Go's template expressions, as far as scheduler_perf's files use them: numbers, from an index and a count.

Supported are `.Index`, `.Count`, literals, parentheses, and scheduler_perf's functions. Errors name anything
else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

Number = int | float
Fields = Mapping[str, int]
"""The values of an expression's fields, by name."""
Expression = Callable[[Fields], Number]
"""A parsed expression; BadExpression if it has no value."""

FIELDS: Final = (".Index", ".Count")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[+-]?\d+(?:\.\d+)?)|(?P<field>\.[A-Za-z]\w*)|(?P<name>[A-Za-z_]\w*)|(?P<mark>[()|])|(?P<rest>\S+))"
)


class BadExpression(Exception):  # noqa: N818 -- named after what it is
    """An expression that cannot be evaluated, with the reason."""


def _whole(value: float) -> int:
    return int(value)


def _product(*factors: Number) -> float:
    product = 1.0
    for factor in factors:
        product *= factor
    return product


def _quotient(dividend: Number, divisor: Number) -> float:
    if divisor == 0:
        raise BadExpression("division by zero")
    return dividend / divisor


def _remainder(dividend: Number, divisor: Number) -> int:
    if int(divisor) == 0:
        raise BadExpression("division by zero")
    remainder = abs(int(dividend)) % abs(int(divisor))  # As in Go, the sign is the dividend's.
    return -remainder if dividend < 0 else remainder


_FUNCTIONS: Final[Mapping[str, Callable[..., Number]]] = {
    "AddFloat": lambda *terms: float(sum(terms)),
    "AddInt": lambda *terms: _whole(sum(terms)),
    "SubtractFloat": lambda one, other: float(one - other),
    "SubtractInt": lambda one, other: _whole(one - other),
    "MultiplyFloat": _product,
    "MultiplyInt": lambda *factors: _whole(_product(*factors)),
    "DivideFloat": _quotient,
    "DivideInt": lambda one, other: _whole(_quotient(one, other)),
    "Mod": _remainder,
}


def parse_expression(text: str) -> Expression:
    """An expression, without its braces; BadExpression if it is not understood."""
    tokens = list(_tokens(text))
    expression = _term(tokens, text, is_call=True)
    if tokens:
        raise BadExpression(f"{{{{ {text} }}}}: {tokens[0][1]!r} is not understood here")
    return expression


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for token in _TOKEN.finditer(text):
        assert token.lastgroup is not None
        yield token.lastgroup, token[token.lastgroup]


def _term(tokens: list[tuple[str, str]], whole: str, is_call: bool) -> Expression:
    """The next tokens; `is_call`: arguments may follow a function's name."""
    shown = f"{{{{ {whole} }}}}"
    if not tokens:
        raise BadExpression(f"{shown}: something is missing")
    kind, text = tokens.pop(0)
    if kind == "number":
        number = float(text) if "." in text else int(text)
        return lambda fields: number
    if kind == "field":
        if text not in FIELDS:
            raise BadExpression(f"{shown}: there is no {text}; there are {' and '.join(FIELDS)}")
        return lambda fields: fields[text]
    if text == "(":
        inner = _term(tokens, whole, is_call=True)
        if not tokens or tokens.pop(0)[1] != ")":
            raise BadExpression(f"{shown}: a parenthesis is not closed")
        return inner
    function = _FUNCTIONS.get(text)
    if kind != "name" or function is None or not is_call:
        raise BadExpression(f"{shown}: {text!r} is not supported; functions are {', '.join(_FUNCTIONS)}")
    arguments = []
    while tokens and tokens[0][1] != ")":
        arguments.append(_term(tokens, whole, is_call=False))
    return _call(function, arguments, f"{shown}: {text}")


def _call(function: Callable[..., Number], arguments: list[Expression], shown: str) -> Expression:
    def call(fields: Fields) -> Number:
        try:
            return function(*[each(fields) for each in arguments])
        except TypeError:
            raise BadExpression(f"{shown} does not take {len(arguments)} arguments") from None

    return call


def number_text(value: Number) -> str:
    """A number as Go prints it: whole floats have no point."""
    return str(int(value)) if value == int(value) else repr(value)
