"""Validation of literals that Kubernetes does when an expression is compiled, besides type checking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moorage.cel.plain import plain_function
from moorage.cel.tree import Call, Comprehension, Const, MakeList, MakeMap, Node, Select, TreeError, Type
from moorage.cel.values import CelError

_UNKNOWN = frozenset(("dyn", "param"))


def check_literals(node: Node) -> None:
    """TreeError for lists and maps of mixed types, and for invalid patterns, durations and timestamps."""
    match node:
        case Call("format", (_, MakeList(elements))):
            for element in elements:
                check_literals(element)
            return
        case Call("matches", (_, Const(str(pattern)))):
            _check(pattern, "matches", "", pattern)
        case Call("duration" | "timestamp" as function, (Const(str(text)),)):
            _check(text, function, text)
        case MakeList(elements, optional):
            _check_same_type([_content(each, index in optional) for index, each in enumerate(elements)])
        case MakeMap(entries):
            _check_same_type([key.type for key, _, _ in entries])
            _check_same_type([_content(value, optional) for _, value, optional in entries])
    for part in _parts(node):
        check_literals(part)


def _check(text: str, function: str, *arguments: str) -> None:
    try:
        plain_function(function, len(arguments), function == "matches")(*arguments)
    except CelError:
        raise TreeError(f"invalid {function} argument: {text}") from None


def _content(node: Node, optional: bool) -> Type:
    return node.type.parameters[0] if optional and node.type.parameters else node.type


def _check_same_type(types: Sequence[Type]) -> None:
    known = [each for each in types if each.kind not in _UNKNOWN]
    for each in known[1:]:
        if each.kind != known[0].kind:
            raise TreeError(f"expected type '{known[0]}' but found '{each}'")


def _parts(node: Node) -> Iterator[Node]:
    match node:
        case Select(operand):
            yield operand
        case Call(_, arguments):
            yield from arguments
        case MakeList(elements):
            yield from elements
        case MakeMap(entries):
            for key, value, _ in entries:
                yield key
                yield value
        case Comprehension(_, over, _, start, condition, step, result):
            yield from (over, start, condition, step, result)
