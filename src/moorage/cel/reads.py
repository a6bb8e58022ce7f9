"""Which of a device's attributes an expression can read, and which of their values it can tell apart.

Two devices that differ only in other attributes and values are equivalent: the expression has the same
result, error and cost for both. So a path into the attributes, `device.attributes["domain"].name`, may be
looked up, tested or followed further, by keys that are literals. An expression that does anything else with
the attributes (loops, sizes, computed keys, maps as arguments) may read all of them. Strings that are only
compared with literals (a uuid, a product's name) are told apart by those literals and by length, which the
cost of a comparison depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from moorage.cel.lookup import INDEXES
from moorage.cel.tree import Call, Comprehension, Const, MakeList, MakeMap, Node, Select, Variable

MAX_NAMES: Final = 8
"""Maximum number of attributes that are listed by name; an expression with more counts as reading all."""

MAX_LITERALS: Final = 64
"""Maximum number of strings that values of an attribute are told apart by; beyond, all values are."""

Literals = frozenset[str] | None
"""The strings that an attribute is compared with; None if it is read in other ways too."""

AttributesRead = frozenset[tuple[str, Literals]]
"""Attributes as `domain/name`, each once, with the strings that their values are told apart by."""

_ATTRIBUTES: Final = "device.attributes"
_EQUALITIES: Final = frozenset(("_==_", "_!=_"))
_NO_LITERALS: Final[frozenset[str]] = frozenset()


class _AllAttributesError(Exception):
    """The expression may read all attributes."""


def attributes_read(tree: Node) -> AttributesRead | None:
    """The attributes that an expression can read; None if that may be all of them."""
    try:
        return together(_collect(tree))
    except _AllAttributesError:
        return None


def together(reads: Iterable[tuple[str, Literals]]) -> AttributesRead | None:
    """The union of reads, each attribute once; None if there are too many attributes."""
    literals_of: dict[str, Literals] = {}
    for name, literals in reads:
        known = literals_of.get(name, _NO_LITERALS)
        union = None if literals is None or known is None else known | literals
        literals_of[name] = None if union is None or len(union) > MAX_LITERALS else union
    return frozenset(literals_of.items()) if len(literals_of) <= MAX_NAMES else None


def _collect(node: Node) -> Iterator[tuple[str, Literals]]:
    name, literals = _comparison(node)
    if name is None:
        step, test = _step(node), _test(node)
        name, literals = _attribute(step or test), None if step else _NO_LITERALS
    if name is not None:
        yield name, literals
        return
    if isinstance(node, Variable) and node.name == _ATTRIBUTES:
        raise _AllAttributesError
    for each in _parts(node):
        yield from _collect(each)


def _comparison(node: Node) -> tuple[str | None, Literals]:
    """The attribute that a node compares with literal strings, if any, and these strings."""
    match node:
        case Call(function, (value, Const(str(text)))) if function in _EQUALITIES:
            return _value(value), frozenset((text,))
        case Call(function, (Const(str(text)), value)) if function in _EQUALITIES:
            return _value(value), frozenset((text,))
        case Call("@in", (value, MakeList(elements))):
            texts = [each.value for each in elements if isinstance(each, Const) and type(each.value) is str]
            if len(texts) == len(elements):
                return _value(value), frozenset(texts)
    return None, None


def _value(node: Node) -> str | None:
    """The attribute that a node evaluates to, if any."""
    match node:
        case Select(_, _, False) | Call("_[_]", _):
            return _attribute(_step(node))
    return None


def _attribute(step: tuple[Node, str] | None) -> str | None:
    """The attribute that a step selects, if any."""
    domain = None if step is None else _domain(step[0])
    return None if step is None or domain is None else f"{domain}/{step[1]}"


def _domain(node: Node) -> str | None:
    """The domain of the attributes that a node evaluates to, if any."""
    step = _step(node)
    if step is None or not isinstance(step[0], Variable) or step[0].name != _ATTRIBUTES:
        return None
    return None if "/" in step[1] else step[1]


def _step(node: Node) -> tuple[Node, str] | None:
    """The container and the key, if a node is a lookup with a literal string as key."""
    match node:
        case Select(operand, field, False):
            return operand, field
        case Call(function, (operand, Const(str(key)))) if function in INDEXES:
            return operand, key
    return None


def _test(node: Node) -> tuple[Node, str] | None:
    """The container and the key, if a node tests for presence."""
    match node:
        case Select(operand, field, True) | Call("@in", (Const(str(field)), operand)):
            return operand, field
    return None


def _parts(node: Node) -> tuple[Node, ...]:
    match node:
        case Select(operand):
            return (operand,)
        case Call(_, arguments):
            return arguments
        case MakeList(elements):
            return elements
        case MakeMap(entries):
            return tuple(part for key, value, _ in entries for part in (key, value))
        case Comprehension(_, over, _, start, condition, step, result):
            return over, start, condition, step, result
    return ()
