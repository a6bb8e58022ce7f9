"""Which of a device's attributes an expression can read.

Two devices that differ in other attributes only are the same to it: it says the same of both, fails in the
same words and costs as much. So a path into the attributes, `device.attributes["domain"].name`, may be looked
up, tested or looked into further, by keys that are literals. An expression that does anything else with the
attributes (loops, sizes, keys that are worked out, maps passed on) may read all of them.
"""

from __future__ import annotations

from typing import Final

from moorage.cel.tree import Call, Comprehension, Const, MakeList, MakeMap, Node, Select, Variable

MAX_NAMES: Final = 8
"""How many attributes are told apart from all of them; verdicts are kept by the values of each."""

_ATTRIBUTES: Final = "device.attributes"
_INDEXES: Final = frozenset(("_[_]", "_[?_]", "_?._"))


class _AllAttributesError(Exception):
    """The expression may read all attributes."""


def attributes_read(tree: Node) -> frozenset[str] | None:
    """The attributes that an expression can read, as `domain/name`; None if that may be all of them."""
    names: set[str] = set()
    try:
        _collect(tree, names)
    except _AllAttributesError:
        return None
    return frozenset(names) if len(names) <= MAX_NAMES else None


def _collect(node: Node, names: set[str]) -> None:
    step = _step(node) or _test(node)
    if step is not None and (domain := _domain(step[0])) is not None:
        names.add(f"{domain}/{step[1]}")
        return
    if isinstance(node, Variable) and node.name == _ATTRIBUTES:
        raise _AllAttributesError
    for each in _parts(node):
        _collect(each, names)


def _domain(node: Node) -> str | None:
    """The domain whose attributes a node stands for, if it does."""
    step = _step(node)
    if step is None or not isinstance(step[0], Variable) or step[0].name != _ATTRIBUTES:
        return None
    return None if "/" in step[1] else step[1]


def _step(node: Node) -> tuple[Node, str] | None:
    """What is looked into and the key, where a node looks into something and the key is a literal text."""
    match node:
        case Select(operand, field, False):
            return operand, field
        case Call(function, (operand, Const(str(key)))) if function in _INDEXES:
            return operand, key
    return None


def _test(node: Node) -> tuple[Node, str] | None:
    """The same, where a node says whether there is something."""
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
