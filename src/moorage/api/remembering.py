"""Memories of what was worked out for texts from outside: bounded in their number, and each in its length."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

LONGEST_REMEMBERED: Final = 320
"""Longer than any name with its prefix: what is longer hardly ever comes twice, but could fill the memory."""

P = ParamSpec("P")
ReturnT = TypeVar("ReturnT")
OfText = Callable[Concatenate[str, P], ReturnT]


def remembered(
    count: int, longest: int = LONGEST_REMEMBERED
) -> Callable[[OfText[P, ReturnT]], OfText[P, ReturnT]]:
    """Remember a function's results by its first argument: `count` of them, and none of a long text."""

    def decorate(function: OfText[P, ReturnT]) -> OfText[P, ReturnT]:
        recalled = lru_cache(maxsize=count)(function)

        @wraps(function)
        def recall(text: str, /, *args: P.args, **kwargs: P.kwargs) -> ReturnT:
            ask: OfText[P, ReturnT] = recalled if len(text) <= longest else function
            return ask(text, *args, **kwargs)

        return recall

    return decorate
