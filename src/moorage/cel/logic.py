"""The operators of CEL that do not always evaluate all their arguments: logic, conditions, defaults.

Errors are exceptions. As CEL specifies, `&&` and `||`, and the macros built of them, ignore an error on one
side if the other side decides the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.cel.budget import Budget
from moorage.cel.values import CelError, Optional, no_such_overload

Scope = dict[str, Any]
"""The variables of an evaluation by name, and its budget as `BUDGET`."""

BUDGET = "@budget"
"""The name of the budget, which is not a valid identifier in expressions."""

Closure = Callable[[Scope], Any]
"""A compiled part of an expression."""


def spend(scope: Scope, cost: int) -> None:
    """Pay for the next operation."""
    budget: Budget = scope[BUDGET]
    budget.spend(cost)


def _logic(decisive: bool) -> Callable[[Closure, Closure], Closure]:
    """`||` (decided by true) and `&&` (decided by false)."""

    def combine(left: Closure, right: Closure) -> Closure:
        def evaluate(scope: Scope) -> bool:
            error: CelError | None = None
            try:
                first = left(scope)
                if first is decisive:
                    return bool(decisive)
                if type(first) is not bool:
                    error = no_such_overload()
            except CelError as caught:
                error = caught
            try:
                second = right(scope)
            except CelError:
                if error is None:
                    raise
                raise error from None
            if second is decisive:
                return bool(decisive)
            if error is not None:
                raise error
            if type(second) is not bool:
                raise no_such_overload()
            return not decisive

        return evaluate

    return combine


def _not(operand: Closure) -> Closure:
    def negate(scope: Scope) -> bool:
        spend(scope, 1)
        value = operand(scope)
        if type(value) is not bool:
            raise no_such_overload()
        return value is False

    return negate


def _if(condition: Closure, positive: Closure, negative: Closure) -> Closure:
    def choose(scope: Scope) -> Any:
        value = condition(scope)
        if type(value) is not bool:
            raise no_such_overload()
        return positive(scope) if value else negative(scope)

    return choose


def _not_strictly_false(operand: Closure) -> Closure:
    def evaluate(scope: Scope) -> bool:
        spend(scope, 1)
        try:
            value = operand(scope)
        except CelError:
            return True
        return value is not False

    return evaluate


def _or_else(unwrap: bool) -> Callable[[Closure, Closure], Closure]:
    """`orValue` (which unwraps) and `or` (which does not)."""

    def combine(operand: Closure, other: Closure) -> Closure:
        def evaluate(scope: Scope) -> Any:
            value = operand(scope)
            if type(value) is not Optional:
                raise no_such_overload()
            if not value.present:
                return other(scope)
            return value.value if unwrap else value

        return evaluate

    return combine


SPECIAL: dict[str, Callable[..., Closure]] = {
    "_||_": _logic(True),
    "_&&_": _logic(False),
    "!_": _not,
    "_?_:_": _if,
    "@not_strictly_false": _not_strictly_false,
    "orValue": _or_else(True),
    "or": _or_else(False),
}
"""By operator, a function from the closures of the arguments to the closure of the operator."""
