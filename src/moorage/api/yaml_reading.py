"""Reading YAML: the one place where text from outside becomes values, within limits.

Composing recurses (in C, where libyaml is present), and aliases can expand few bytes to much. So the events
of a text are checked first, without recursion or memory: its depth, and its size with all aliases expanded.

PyYAML reads YAML 1.1: `1:30:00` is a number, and reading it takes time quadratic in its length. In
Kubernetes' YAML it is text, and so are times.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import yaml

MAX_DEPTH: Final = 250
"""Maximum depth of nested lists and maps.

A quarter of Python's recursion limit, which msgspec keeps too: walks over values take up to two frames a
level, and their callers have frames as well. Kubernetes reads 10,000 levels; its objects have less than 100.
"""
_MAX_TAG_DIRECTIVES: Final = 100
"""Maximum number of tag directives; libyaml compares each with all before it."""
_MAX_NUMBER_LENGTH: Final = 400
"""Maximum characters of a number; the longest number that a float can be is shorter."""

# go-yaml's rule for aliases: their expansion may be a limited share of all nodes.
_UNCHECKED_ALIASED_NODES: Final = 100
_UNCHECKED_NODES: Final = 1000
_SMALL_DOCUMENT_NODES: Final = 400_000
_LARGE_DOCUMENT_NODES: Final = 4_000_000
_ALIAS_SHARE_SMALL: Final = 0.99
_ALIAS_SHARE_LARGE: Final = 0.10

_TAG: Final = "tag:yaml.org,2002:"
_TEXT: Final = f"{_TAG}str"
_NUMBERS: Final = {
    f"{_TAG}int": re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)"),
    f"{_TAG}float": re.compile(
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    ),
}
_TAG_DIRECTIVE: Final = re.compile("(?:^|[\n\r\x85\u2028\u2029])%TAG")

ReadT = TypeVar("ReadT")


class YamlError(Exception):
    """Text that is not YAML, or that goes beyond a limit; the message is one line."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason if line is None else f"line {line}: {reason}")
        self.reason = reason
        self.line = line


@dataclass(frozen=True, slots=True)
class YamlLimits:
    """What is read of a text, beside the limits that hold for all."""

    allows_aliases: bool = True
    max_nodes: int | None = None
    """The most values, with keys; None: as many as there are."""


FILE_LIMITS: Final = YamlLimits()
"""For files that users name: aliases are allowed, as in kubectl, if their expansion is small."""


class _Loader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """YAML's JSON part, with the words for booleans of YAML 1.1."""

    def checked_number(self, node: Any) -> Any:
        """A number, also where a tag declares a text as one."""
        text = self.construct_scalar(node)
        if len(text) > _MAX_NUMBER_LENGTH or not _NUMBERS[node.tag].fullmatch(text):
            raise yaml.YAMLError(f"{text[:50]!r} is not a number")
        read = self.construct_yaml_int if node.tag.endswith("int") else self.construct_yaml_float
        return read(node)


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, re.compile(rf"(?:{_NUMBERS[tag].pattern})\Z") if tag in _NUMBERS else pattern)
        for tag, pattern in resolvers
        if tag != f"{_TAG}timestamp"
    ]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}
for _tag in _NUMBERS:
    _Loader.add_constructor(_tag, _Loader.checked_number)


_RESOLVER: Final = _Loader("")
"""For scalars that are read without a document; it keeps nothing between two of them."""
PLACEHOLDER: Final = re.compile("\ue000([0-9]+)\ue001")
"""A number that stands for a text which is filled in later, between characters for private use."""


class UnresolvedScalar(str):
    """The text of a scalar without quotes that has placeholders: its type depends on what they stand for."""

    __slots__ = ()


class _TemplateLoader(_Loader):
    """Leaves scalars with placeholders unresolved; implicit resolvers see only those without quotes."""

    def unresolved(self, node: Any) -> UnresolvedScalar:
        """A scalar whose type is not known yet."""
        return UnresolvedScalar(self.construct_scalar(node))


_TemplateLoader.add_implicit_resolver("!unresolved", re.compile(f".*{PLACEHOLDER.pattern}", re.DOTALL), None)
_TemplateLoader.add_constructor("!unresolved", _TemplateLoader.unresolved)


def placeholder(number: int) -> str:
    """The placeholder with a number."""
    return f"\ue000{number}\ue001"


def load_yaml(text: str, limits: YamlLimits = FILE_LIMITS) -> Any:
    """The value of the one document in a text (None if there is none); YamlError if it cannot be read."""
    return _read(lambda: yaml.load(text, _Loader), text, limits)


def load_all_yaml(text: str) -> list[Any]:
    """The values of all documents in a text; YamlError if they cannot be read."""
    return _read(lambda: list(yaml.load_all(text, _Loader)), text, FILE_LIMITS)


def load_template_yaml(text: str) -> list[Any]:
    """The values of all documents in a text with placeholders; YamlError if they cannot be read."""
    return _read(lambda: list(yaml.load_all(text, _TemplateLoader)), text, FILE_LIMITS)


def resolved_scalar(text: str) -> Any:
    """The value of a scalar without quotes."""
    tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))
    return text if tag == _TEXT else _RESOLVER.construct_document(yaml.ScalarNode(tag, text))


def compose_all_yaml(text: str, limits: YamlLimits = FILE_LIMITS) -> list[yaml.Node]:
    """All documents in a text as trees of nodes with line numbers; YamlError if they cannot be read."""
    return _read(lambda: list(yaml.compose_all(text, _Loader)), text, limits)


def _read(read: Callable[[], ReadT], text: str, limits: YamlLimits) -> ReadT:
    try:
        if len(_TAG_DIRECTIVE.findall(text)) > _MAX_TAG_DIRECTIVES:
            raise YamlError(f"more than {_MAX_TAG_DIRECTIVES} TAG directives")
        measure = _Measure(limits)
        for event in yaml.parse(text, _Loader):
            measure.take(event)
        return read()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = " ".join(str(getattr(error, "problem", None) or error).split()).removeprefix("but ")
        raise YamlError(reason, None if mark is None else mark.line + 1) from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # Raised by PyYAML's constructors where the tag does not fit the text: `!!bool maybe`.
        raise YamlError("a tag does not fit its value") from None


class _Measure:
    """How deep a text is nested, and how many nodes it has; an alias counts as what it stands for."""

    def __init__(self, limits: YamlLimits) -> None:
        self._allows_aliases = limits.allows_aliases
        self._max_nodes = limits.max_nodes
        self._nodes = 0
        self._aliased_nodes = 0
        self._open: list[_Open] = []
        self._anchored: dict[str, tuple[int, int] | None] = {}
        """By anchor: number of nodes and levels of its value; None while that is incomplete."""

    def take(self, event: yaml.Event) -> None:
        """Count one event; YamlError where it goes beyond a limit."""
        problem = None
        if isinstance(event, yaml.ScalarEvent):
            problem = self._add(1, 0)
            if event.anchor is not None:
                self._anchored[event.anchor] = (1, 0)
        elif isinstance(event, yaml.CollectionStartEvent):
            problem = self._add(1, 1)
            self._open.append(_Open(event.anchor, self._nodes - 1))
            if event.anchor is not None:
                self._anchored[event.anchor] = None
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close(self._open.pop())
        elif isinstance(event, yaml.AliasEvent):
            problem = self._expand(str(event.anchor))
        elif isinstance(event, yaml.DocumentStartEvent):
            self._anchored.clear()
        if problem:
            raise YamlError(problem, None if event.start_mark is None else event.start_mark.line + 1)

    def _add(self, nodes: int, levels: int) -> str | None:
        """Add nodes that are nested in this number of levels; returns the error, if any."""
        self._nodes += nodes
        if self._open:
            self._open[-1].levels = max(self._open[-1].levels, levels)
        if len(self._open) + levels > MAX_DEPTH:
            return f"nested more than {MAX_DEPTH} deep"
        if self._max_nodes is not None and self._nodes > self._max_nodes:
            return f"more than {self._max_nodes} values"
        return None

    def _close(self, closed: _Open) -> None:
        levels = closed.levels + 1
        if self._open:
            self._open[-1].levels = max(self._open[-1].levels, levels)
        if closed.anchor is not None:
            self._anchored[closed.anchor] = (self._nodes - closed.nodes_before, levels)

    def _expand(self, anchor: str) -> str | None:
        if not self._allows_aliases:
            return "aliases are not supported"
        if anchor not in self._anchored:
            return f"found undefined alias {anchor!r}"
        known = self._anchored[anchor]
        if known is None:
            return "a value contains itself; write it out instead of using an alias"
        self._aliased_nodes += known[0]
        return self._add(*known) or self._excess()

    def _excess(self) -> str | None:
        is_checked = self._aliased_nodes > _UNCHECKED_ALIASED_NODES and self._nodes > _UNCHECKED_NODES
        if is_checked and self._aliased_nodes > _allowed_share(self._nodes) * self._nodes:
            return "document contains excessive aliasing"
        return None


class _Open:
    """A list or map that is not complete yet."""

    def __init__(self, anchor: str | None, nodes_before: int) -> None:
        self.anchor = anchor
        self.nodes_before = nodes_before
        self.levels = 0
        """Maximum number of levels of its items."""


def _allowed_share(nodes: int) -> float:
    """The share of this number of nodes that may result from aliases."""
    beyond = min(max(nodes - _SMALL_DOCUMENT_NODES, 0) / (_LARGE_DOCUMENT_NODES - _SMALL_DOCUMENT_NODES), 1.0)
    return _ALIAS_SHARE_SMALL - (_ALIAS_SHARE_SMALL - _ALIAS_SHARE_LARGE) * beyond
