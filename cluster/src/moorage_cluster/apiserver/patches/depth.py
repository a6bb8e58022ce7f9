"""A limit for the nesting of values, so that a hostile patch is a client error."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from moorage.apimachinery import errors

P = ParamSpec("P")
T = TypeVar("T")


def rejects_deep_nesting(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a recursive function; values that are nested too deeply are a bad request."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            raise errors.bad_request("exceeded max depth") from None

    return guarded
