"""Selecting a field, indexing a list or map, and the optional forms of both."""

from __future__ import annotations

from typing import Any

from moorage.cel.functions import contained
from moorage.cel.logic import Closure, Scope, spend
from moorage.cel.values import NONE, CelError, Domains, Optional, Uint, no_such_overload

INDEXES = frozenset(("_[_]", "_[?_]", "_?._"))
"""The functions that `indexed` evaluates."""


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
    """The member, or no value if it is missing, or if the container has no value."""
    if type(container) is Optional:
        return _look_up_optionally(container.value, key) if container.present else NONE
    if isinstance(container, dict):
        there = isinstance(container, Domains) or contained(key, container)
    elif type(container) is list:
        there = type(key) in (int, Uint) and 0 <= key < len(container)
    else:
        raise no_such_overload()
    return Optional(_look_up(container, key)) if there else NONE


def selected(operand: Closure, field: str, test_only: bool) -> Closure:
    """The closure of a field; test_only: of whether there is such a field."""
    if test_only:

        def test(scope: Scope) -> bool:
            container = operand(scope)
            if type(container) is not Optional and not isinstance(container, dict):
                raise no_such_overload()
            return _look_up_optionally(container, field).present

        return test

    def select(scope: Scope) -> Any:
        container = operand(scope)
        spend(scope, 1)
        if type(container) is Optional:
            return _look_up_optionally(container, field)
        if not isinstance(container, dict):
            raise no_such_overload()
        return _look_up(container, field)

    return select


def indexed(function: str, operand: Closure, key: Closure) -> Closure:
    """The closure of one of `INDEXES`."""

    def index(scope: Scope) -> Any:
        container = operand(scope)
        wanted = key(scope)
        spend(scope, 1)
        return (
            _look_up_optionally(container, wanted)
            if type(container) is Optional
            else _look_up(container, wanted)
        )

    def index_optionally(scope: Scope) -> Optional:
        found = _look_up_optionally(operand(scope), key(scope))
        spend(scope, int(found.present))
        return found

    return index if function == "_[_]" else index_optionally
