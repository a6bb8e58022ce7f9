"""Calls of functions and operators, as closures that evaluate the arguments, pay for the call and run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.cel.arithmetic import ARITHMETIC
from moorage.cel.functions import FUNCTIONS, LIST_FUNCTIONS, compare, contained
from moorage.cel.logic import BUDGET, SPECIAL, Closure, Scope, spend
from moorage.cel.payments import payment
from moorage.cel.plain import plain_function
from moorage.cel.tree import Call, TreeError
from moorage.cel.values import CelError, equal, same

_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "_<_": lambda order: order < 0,
    "_<=_": lambda order: order <= 0,
    "_>_": lambda order: order > 0,
    "_>=_": lambda order: order >= 0,
}
_BINARY: dict[str, Callable[..., Any]] = {
    "_==_": equal,
    "_!=_": lambda left, right: not same(left, right),
    "@in": contained,
    **ARITHMETIC,
}


def called(node: Call, arguments: list[Closure]) -> Closure:
    """The closure of a call; TreeError if the function is unknown."""
    name = node.function
    special = SPECIAL.get(name)
    if special is not None:
        return special(*arguments)
    function = _function(name, len(arguments), node.member)
    is_plain = name not in FUNCTIONS and name not in _BINARY and name not in _COMPARISONS
    pay = payment(node, is_plain)

    def call(scope: Scope) -> Any:
        try:
            values = [argument(scope) for argument in arguments]
        except CelError:
            spend(scope, 1)
            raise
        pay(scope[BUDGET], values)
        return function(*values)

    return call


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
    return lambda first, *rest: (for_lists if type(first) is list and len(rest) == 1 else plain)(first, *rest)
