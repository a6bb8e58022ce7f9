"""From syntax tree to closures: every node becomes a function of the variables."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from moorage.devices.cel.functions import FUNCTIONS, LIST_FUNCTIONS, compare, contained, in_range
from moorage.devices.cel.logic import SPECIAL, Closure, Scope
from moorage.devices.cel.plain import plain_function
from moorage.devices.cel.tree import (
    Call,
    Comprehension,
    Const,
    MakeList,
    MakeMap,
    Node,
    Select,
    TreeError,
    Variable,
)
from moorage.devices.cel.values import (
    NONE,
    TYPE_NAMES,
    CelError,
    Domains,
    Optional,
    TypeName,
    Uint,
    equal,
    no_such_overload,
    same,
)

STEPS = "@steps"
"""The name under which a scope counts how many more steps its loops may take."""

_TYPES = frozenset(TYPE_NAMES.values())
_EXACT: dict[str, Callable[[int, int], int]] = {
    "_+_": operator.add,
    "_-_": operator.sub,
    "_*_": operator.mul,
}
_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "_<_": lambda order: order < 0,
    "_<=_": lambda order: order <= 0,
    "_>_": lambda order: order > 0,
    "_>=_": lambda order: order >= 0,
}


class _Failure:
    """An error that is kept as a value: it strikes whoever looks at it."""

    __slots__ = ("error",)

    def __init__(self, error: CelError) -> None:
        self.error = error


def closure(node: Node) -> Closure:
    """A function that evaluates a tree; TreeError if something in it is unknown."""
    match node:
        case Const(value):
            return lambda scope: value
        case Variable(name):
            return _variable(name)
        case Select(operand, field, test_only):
            return _select(closure(operand), field, test_only)
        case Call(function, arguments, member):
            return _call(function, [closure(argument) for argument in arguments], member)
        case MakeList(elements, optional):
            return _list([(closure(each), index in optional) for index, each in enumerate(elements)])
        case MakeMap(entries):
            return _map([(closure(key), closure(value), optional) for key, value, optional in entries])
        case Comprehension():
            return _fold(node)


def _variable(name: str) -> Closure:
    if name in _TYPES:
        return lambda scope: TypeName(name)

    def look(scope: Scope) -> Any:
        value = scope[name]
        if type(value) is _Failure:
            raise value.error
        return value

    return look


# Looking into values


def _look_up(container: Any, key: Any) -> Any:
    if isinstance(container, dict):
        try:
            return container[key]
        except KeyError:
            raise CelError(f"no such key: {key}") from None
        except TypeError:
            raise no_such_overload() from None
    if type(container) is list:
        if type(key) not in (int, Uint):
            raise no_such_overload()
        if not 0 <= key < len(container):
            raise CelError(f"index out of bounds: {key}")
        return container[key]
    raise no_such_overload()


def _look_up_optionally(container: Any, key: Any) -> Optional:
    """What is there, or nothing; looking into nothing gives nothing."""
    if type(container) is Optional:
        return _look_up_optionally(container.value, key) if container.present else NONE
    if isinstance(container, dict):
        there = isinstance(container, Domains) or key in container
    elif type(container) is list:
        there = type(key) in (int, Uint) and 0 <= key < len(container)
    else:
        raise no_such_overload()
    return Optional(_look_up(container, key)) if there else NONE


def _select(operand: Closure, field: str, test_only: bool) -> Closure:
    if test_only:

        def test(scope: Scope) -> bool:
            container = operand(scope)
            if type(container) is not Optional and not isinstance(container, dict):
                raise no_such_overload()
            return _look_up_optionally(container, field).present

        return test

    def select(scope: Scope) -> Any:
        container = operand(scope)
        if type(container) is Optional:
            return _look_up_optionally(container, field)
        if not isinstance(container, dict):
            raise no_such_overload()
        return _look_up(container, field)

    return select


def _index(container: Any, key: Any) -> Any:
    if type(container) is Optional:
        return _look_up_optionally(container, key)
    return _look_up(container, key)


# Making values


def _list(elements: list[tuple[Closure, bool]]) -> Closure:
    def make(scope: Scope) -> list[Any]:
        made = []
        for element, optional in elements:
            value = element(scope)
            if not optional:
                made.append(value)
            elif value.present:
                made.append(value.value)
        return made

    return make


def _map(entries: list[tuple[Closure, Closure, bool]]) -> Closure:
    def make(scope: Scope) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, value, optional in entries:
            content = value(scope)
            if not optional:
                made[key(scope)] = content
            elif content.present:
                made[key(scope)] = content.value
        return made

    return make


# Calls


def _call(name: str, arguments: list[Closure], member: bool) -> Closure:
    special = SPECIAL.get(name)
    if special is not None:
        return special(*arguments)
    function = _function(name, len(arguments), member)
    match arguments:
        case [one]:
            return lambda scope: function(one(scope))
        case [left, right]:
            return lambda scope: function(left(scope), right(scope))
    return lambda scope: function(*(argument(scope) for argument in arguments))


def _function(name: str, count: int, member: bool) -> Callable[..., Any]:
    if name in _COMPARISONS:
        judge = _COMPARISONS[name]
        return lambda left, right: judge(compare(left, right))
    if name in _BINARY:
        return _BINARY[name]
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    try:
        plain = plain_function(name, count, member)
    except RuntimeError as error:
        raise TreeError(f"unknown function {name}") from error
    for_lists = LIST_FUNCTIONS.get(name)
    if for_lists is None:
        return plain
    return lambda first, *rest: (for_lists if type(first) is list else plain)(first, *rest)


def _arithmetic(name: str) -> Callable[[Any, Any], Any]:
    exact = _EXACT.get(name)

    def operate(left: Any, right: Any) -> Any:
        kind = type(left)
        if kind is type(right):
            if name == "_+_" and kind in (str, bytes, list):
                return left + right
            if exact is not None and kind in (int, Uint):
                return in_range(exact(int(left), int(right)), kind)
        return plain_function(name, 2, False)(left, right)

    return operate


_BINARY: dict[str, Callable[..., Any]] = {
    "_==_": equal,
    "_!=_": lambda left, right: not same(left, right),
    "_[_]": _index,
    "_[?_]": _look_up_optionally,
    "_?._": _look_up_optionally,
    "@in": contained,
    **{name: _arithmetic(name) for name in ("_+_", "_-_", "_*_", "_/_", "_%_")},
}


def _fold(node: Comprehension) -> Closure:
    over, start, result = closure(node.over), closure(node.start), closure(node.result)
    condition, step = closure(node.condition), closure(node.step)
    variable, accumulator = node.variable, node.accumulator

    def fold(scope: Scope) -> Any:
        items = over(scope)
        if not isinstance(items, list | dict):
            raise no_such_overload()
        inner = dict(scope)
        inner[accumulator] = _kept(start, scope)
        for item in items:
            inner[variable] = item
            if not condition(inner):
                break
            steps = scope[STEPS]
            steps[0] -= 1
            if steps[0] < 0:
                raise CelError("operation cancelled: actual cost limit exceeded")
            inner[accumulator] = _kept(step, inner)
        return result(inner)

    return fold


def _kept(evaluate: Closure, scope: Scope) -> Any:
    try:
        return evaluate(scope)
    except CelError as error:
        return _Failure(error)
