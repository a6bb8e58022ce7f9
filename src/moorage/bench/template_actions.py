"""Go's template actions, as far as scheduler_perf's files use them: conditions, ranges, variables.

A template is expanded once for the parameters of an operation. What depends on the index of an object, and
arithmetic, stays in the text as an expression, for `object_templates`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

_ACTION = re.compile(r"(\s*)\{\{-\s(.*?)\}\}|\{\{(.*?)\}\}", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>[+-]?\d+(?:\.\d+)?)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<variable>\$\w*)"""
    r"""|(?P<field>\.\w*)|(?P<name>[A-Za-z_]\w*)|(?P<mark>:=|[()|,])|(?P<rest>\S+))"""
)
_OF_OBJECT: Final = (".Index", ".Count")
"""The fields whose values depend on the object."""
_WORDS: Final = {"nil": None, "true": True, "false": False}


class BadAction(Exception):  # noqa: N818 -- named after what it is
    """An action that cannot be carried out, with the reason."""


class Deferred(NamedTuple):
    """An expression whose value is computed for each object."""

    text: str


class _Action(NamedTuple):
    """An action; `keyword` is empty for an expression whose value is written."""

    keyword: str
    rest: str
    shown: str


_Item = str | _Action
_Values = Mapping[str, Any]


def expand_template(text: str, params: Mapping[str, Any]) -> str:
    """A template with its actions carried out; BadAction if one is not understood."""
    items = list(_items(text))
    values = {f".{name}": value for name, value in params.items()}
    written: list[str] = []
    end = _Block(items, written).run(0, {**values, ".": params})
    if end < len(items):
        raise BadAction(f"{_shown(items[end])}: nothing begins here that could end")
    return "".join(written)


def _shown(item: _Item) -> str:
    return item.shown if isinstance(item, _Action) else item


def _items(text: str) -> Iterator[_Item]:
    """Text and actions in turn."""
    end, trims = 0, False
    for found in _ACTION.finditer(text):
        before = text[end : found.start()]
        yield before.lstrip() if trims else before
        body = found[2] if found[2] is not None else found[3]
        trims = bool(re.search(r"\s-$", body))
        body = body[:-1].strip() if trims else body.strip()
        if not body.startswith("/*"):
            keyword = re.match(r"(if|else|end|range|with|define|template|block)\b", body)
            word = keyword[0] if keyword else ""
            yield _Action(word, body[len(word) :].strip(), f"{{{{ {body} }}}}")
        end = found.end()
    rest = text[end:]
    yield rest.lstrip() if trims else rest


class _Block:
    """Carries out items up to the end of a block, and appends to what is written."""

    def __init__(self, items: list[_Item], written: list[str]) -> None:
        self._items = items
        self._written = written

    def run(self, at: int, values: _Values) -> int:
        """Carry out items from one on; returns the place of the `else` or `end` behind them."""
        values = dict(values)
        while at < len(self._items):
            item = self._items[at]
            if isinstance(item, str):
                self._written.append(item)
            elif item.keyword in ("else", "end"):
                return at
            elif item.keyword == "if":
                at = self._if(at, item.rest, values)
            elif item.keyword == "range":
                at = self._range(at, item, values)
            elif item.keyword:
                raise BadAction(f"{item.shown}: {item.keyword} is not supported")
            else:
                self._expression(item, values)
            at += 1
        return at

    def _expression(self, item: _Action, values: dict[str, Any]) -> None:
        tokens = _tokens(item)
        if len(tokens) > 1 and tokens[0][0] == "variable" and tokens[1][1] in (":=", "="):
            values[tokens[0][1]] = _Expression(tokens[2:], values, item.shown).value()
            return
        value = _Expression(tokens, values, item.shown).value()
        if value is None:
            raise BadAction(f"{item.shown}: it has no value")
        self._written.append(_text(value))

    def _if(self, at: int, condition: str, values: dict[str, Any]) -> int:
        """Carry out one of two branches; returns the place of the `end`."""
        holds = False
        item = self._items[at]
        assert isinstance(item, _Action)
        while True:
            wanted = not holds
            if condition:
                tokens = _tokens(_Action("", condition, item.shown))
                wanted = wanted and _is_true(_Expression(tokens, values, item.shown).value(), item.shown)
            at = self._branch(at + 1, values, wanted)
            holds = holds or wanted
            item = self._at_end(at, item)
            if item.keyword == "end":
                return at
            condition = item.rest.removeprefix("if").strip()

    def _range(self, at: int, item: _Action, values: dict[str, Any]) -> int:
        """Carry out a body for each number below another, or for each item of a list."""
        tokens = _tokens(item)
        names = []
        if any(text == ":=" for _, text in tokens):
            place = [text for _, text in tokens].index(":=")
            names = [text for kind, text in tokens[:place] if kind == "variable"]
            tokens = tokens[place + 1 :]
        found = _Expression(tokens, values, item.shown).value()
        if isinstance(found, Deferred) or not isinstance(found, int | list):
            raise BadAction(f"{item.shown}: {_text(found)!r} is neither a number nor a list")
        each_of: Iterable[Any] = range(found) if isinstance(found, int) else found
        end = self._branch(at + 1, values, False)
        for index, each in enumerate(each_of):
            given = zip(names, (index, each) if len(names) > 1 else (each,), strict=True) if names else ()
            self._branch(at + 1, {**values, ".": each, **dict(given)}, True)
        if self._at_end(end, item).keyword == "else":
            raise BadAction(f"{item.shown}: else is not supported here")
        return end

    def _branch(self, at: int, values: _Values, is_wanted: bool) -> int:
        """Carry out a branch, or skip it."""
        if is_wanted:
            return self.run(at, values)
        depth = 0
        for place in range(at, len(self._items)):
            item = self._items[place]
            if isinstance(item, _Action):
                if depth == 0 and item.keyword in ("else", "end"):
                    return place
                depth += (item.keyword in ("if", "range", "with")) - (item.keyword == "end")
        return len(self._items)

    def _at_end(self, at: int, beginning: _Action) -> _Action:
        if at >= len(self._items):
            raise BadAction(f"{beginning.shown}: there is no end")
        item = self._items[at]
        assert isinstance(item, _Action)
        return item


def _tokens(item: _Action) -> list[tuple[str, str]]:
    found = []
    for token in _TOKEN.finditer(item.rest):
        assert token.lastgroup is not None
        found.append((token.lastgroup, token[token.lastgroup]))
    return found


class _Expression:
    """The value of an expression; Deferred if it depends on the object."""

    def __init__(self, tokens: list[tuple[str, str]], values: _Values, shown: str) -> None:
        self._tokens = tokens
        self._values = values
        self._shown = shown

    def value(self) -> Any:
        """The value of all tokens."""
        value = self._pipeline()
        if self._tokens:
            raise BadAction(f"{self._shown}: {self._tokens[0][1]!r} is not understood here")
        return value

    def _pipeline(self) -> Any:
        value = self._command(())
        while self._tokens and self._tokens[0][1] == "|":
            self._tokens.pop(0)
            value = self._command((value,))
        return value

    def _command(self, piped: tuple[Any, ...]) -> Any:
        if not self._tokens:
            raise BadAction(f"{self._shown}: something is missing")
        kind, name = self._tokens[0]
        if kind != "name" or name in _WORDS:
            return self._operand()
        self._tokens.pop(0)
        arguments = []
        while self._tokens and self._tokens[0][1] not in (")", "|"):
            arguments.append(self._operand())
        return self._call(name, [*arguments, *piped])

    def _operand(self) -> Any:
        kind, text = self._tokens.pop(0)
        if text in _OF_OBJECT:
            return Deferred(text)
        if kind in ("variable", "field"):
            return self._named(kind, text)
        if text == "(":
            value = self._pipeline()
            if not self._tokens or self._tokens.pop(0)[1] != ")":
                raise BadAction(f"{self._shown}: a parenthesis is not closed")
            return value
        if kind == "name" and text in _WORDS:
            return _WORDS[text]
        if kind not in ("number", "text"):
            raise BadAction(f"{self._shown}: {text!r} is not understood here")
        return msgspec.json.decode(text.lstrip("+"))

    def _named(self, kind: str, text: str) -> Any:
        if kind == "variable" and text not in self._values:
            raise BadAction(f"{self._shown}: there is no variable {text}")
        return self._values.get(text)

    def _call(self, name: str, arguments: list[Any]) -> Any:
        function = _FUNCTIONS.get(name)
        if function is None:
            return Deferred(" ".join([name, *map(_argument, arguments)]))
        if any(isinstance(each, Deferred) for each in arguments):
            raise BadAction(f"{self._shown}: {name} cannot depend on the index")
        try:
            return function(*arguments)
        except (TypeError, ValueError):
            raise BadAction(f"{self._shown}: {name} does not take these arguments") from None


def _argument(value: Any) -> str:
    if isinstance(value, Deferred):
        return f"({value.text})" if " " in value.text else value.text
    return _text(value)


def _is_true(value: Any, shown: str) -> bool:
    """Whether a condition holds, as in Go: zero, empty and missing values are false."""
    if isinstance(value, Deferred):
        raise BadAction(f"{shown}: a condition cannot depend on the index")
    return bool(value)


def _text(value: Any) -> str:
    """A value as Go prints it."""
    if isinstance(value, Deferred):
        return f"{{{{ {value.text} }}}}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _first_true(*values: Any) -> Any:
    return next(filter(None, values), values[-1])


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "or": _first_true,
    "and": lambda *values: next((each for each in values if not each), values[-1]),
    "not": lambda value: not value,
    "eq": lambda value, *others: value in others,
    "ne": lambda value, other: value != other,
    "lt": lambda value, other: value < other,
    "le": lambda value, other: value <= other,
    "gt": lambda value, other: value > other,
    "ge": lambda value, other: value >= other,
    "Int": int,
    "JSON": lambda value: msgspec.json.encode(value).decode(),
}
"""Functions of values that do not depend on the object; others are arithmetic."""
