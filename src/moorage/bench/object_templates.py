"""Objects from files with Go's template expressions in them.

Only numeric expressions are supported: `.Index`, `.Count`, literals, parentheses, and scheduler_perf's
functions. Its files use nothing else; the error for anything else names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from moorage.api.decode import InputError
from moorage.api.files import load_documents, read_text
from moorage.api.manifests import Manifest

Number = int | float

_ACTION = re.compile(r"\{\{(-\s)?(.*?)(\s-)?\}\}", re.DOTALL)
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[+-]?\d+(?:\.\d+)?)|(?P<field>\.[A-Za-z]\w*)|(?P<name>[A-Za-z_]\w*)|(?P<mark>[()|])|(?P<rest>\S+))"
)
_MAX_CACHED: Final = 2000
"""Maximum number of cached objects by text; parsing YAML is slow."""
_FREE_KEYS: Final = frozenset(
    (
        "annotations",
        "labels",
        "matchLabels",
        "nodeSelector",
        "selector",
        "requests",
        "limits",
        "capacity",
        "allocatable",
        "overhead",
        "data",
        "parameters",
        "volumeAttributes",
    )
)
"""Fields that contain maps with keys chosen by the user."""


class _BadExpression(Exception):  # noqa: N818 -- named after what it is
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
        raise _BadExpression("division by zero")
    return dividend / divisor


def _remainder(dividend: Number, divisor: Number) -> int:
    if int(divisor) == 0:
        raise _BadExpression("division by zero")
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


class Template:
    """A file with one object, which may depend on its index and on the count."""

    def __init__(self, text: str, where: str) -> None:
        self._where = where
        self._pieces = _pieces(text)
        self._read: dict[str, Manifest] = {}

    def object(self, index: int = 0, count: int = 1) -> Manifest:
        """The object at an index; read-only, since equal objects are shared."""
        fields = {".Index": index, ".Count": count}
        try:
            text = "".join(
                piece if number % 2 == 0 else _text(_evaluated(piece, fields))
                for number, piece in enumerate(self._pieces)
            )
        except _BadExpression as error:
            raise InputError(self._where, str(error)) from None
        found = self._read.get(text)
        if found is None:
            if len(self._read) >= _MAX_CACHED:
                self._read.clear()
            found = self._read[text] = _parsed(text, self._where)
        return found


def _pieces(text: str) -> list[str]:
    """Alternating text and expressions, beginning and ending with text."""
    pieces, end = [], 0
    trims = False
    for action in _ACTION.finditer(text):
        before = text[end : action.start()]
        before = before.lstrip() if trims else before
        pieces += [before.rstrip() if action[1] else before, action[2].strip()]
        end, trims = action.end(), bool(action[3])
    rest = text[end:]
    return [*pieces, rest.lstrip() if trims else rest]


def _evaluated(expression: str, fields: Mapping[str, Number]) -> Number:
    tokens = list(_tokens(expression))
    value = _term(tokens, fields, expression, is_call=True)
    if tokens:
        raise _BadExpression(f"{{{{ {expression} }}}}: {tokens[0][1]!r} is not understood here")
    return value


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    for token in _TOKEN.finditer(expression):
        assert token.lastgroup is not None
        yield token.lastgroup, token[token.lastgroup]


def _term(
    tokens: list[tuple[str, str]], fields: Mapping[str, Number], expression: str, is_call: bool
) -> Number:
    """The value of the next tokens; `is_call`: arguments may follow a function's name."""
    shown = f"{{{{ {expression} }}}}"
    if not tokens:
        raise _BadExpression(f"{shown}: something is missing")
    kind, text = tokens.pop(0)
    if kind == "number":
        return float(text) if "." in text else int(text)
    if kind == "field":
        if text not in fields:
            raise _BadExpression(f"{shown}: there is no {text}; there are {' and '.join(fields)}")
        return fields[text]
    if text == "(":
        value = _term(tokens, fields, expression, is_call=True)
        if not tokens or tokens.pop(0)[1] != ")":
            raise _BadExpression(f"{shown}: a parenthesis is not closed")
        return value
    function = _FUNCTIONS.get(text)
    if kind != "name" or function is None or not is_call:
        raise _BadExpression(f"{shown}: {text!r} is not supported; functions are {', '.join(_FUNCTIONS)}")
    arguments = []
    while tokens and tokens[0][1] != ")":
        arguments.append(_term(tokens, fields, expression, is_call=False))
    try:
        return function(*arguments)
    except TypeError:
        raise _BadExpression(f"{shown}: {text} does not take {len(arguments)} arguments") from None


def _text(value: Number) -> str:
    """A number as Go prints it: whole floats have no point."""
    return str(int(value)) if value == int(value) else repr(value)


def _parsed(text: str, where: str) -> Manifest:
    documents = load_documents(text, where)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InputError(where, "expected one object")
    found: Manifest = _as_named(documents[0])
    return found


def _as_named(value: object) -> Manifest:
    """An object with the first letters of its fields in lower case; unlike Go, servers are case-sensitive."""
    named = _named(value)
    assert isinstance(named, dict)
    return named


def _named(value: object) -> object:
    if isinstance(value, list):
        return [_named(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {}
    for key, item in value.items():
        name = str(key)[:1].lower() + str(key)[1:]
        named[name] = item if name in _FREE_KEYS and not _is_selector(item) else _named(item)
    return named


def _is_selector(value: object) -> bool:
    """Whether this is a label selector, not a plain map in another field called `selector`."""
    return isinstance(value, dict) and any(str(key).lower() in _SELECTOR_FIELDS for key in value)


_SELECTOR_FIELDS: Final = ("matchlabels", "matchexpressions")


class Templates:
    """The templates of one workload file, each read once; paths are relative to the file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[str, Template] = {}

    def get(self, path: str) -> Template:
        """A template, read and validated; InputError if it is invalid."""
        template = self._read.get(path)
        if template is None:
            file = self._directory / path
            template = Template(read_text(file), str(file))
            template.object()
            self._read[path] = template
        return template
