"""Caches of results for texts from outside: bounded in number, and each in length."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

MAX_CACHED_LENGTH: Final = 320
"""Limit of a cached text, in characters. Prefixed names are shorter; longer ones could fill memory."""

P = ParamSpec("P")
ReturnT = TypeVar("ReturnT")
OfText = Callable[Concatenate[str, P], ReturnT]


def cached_by_text(
    count: int, max_length: int = MAX_CACHED_LENGTH
) -> Callable[[OfText[P, ReturnT]], OfText[P, ReturnT]]:
    """Keep a function's results by its first argument: `count` of them, and none of a long text."""

    def decorate(function: OfText[P, ReturnT]) -> OfText[P, ReturnT]:
        cached = lru_cache(maxsize=count)(function)

        @wraps(function)
        def call(text: str, /, *args: P.args, **kwargs: P.kwargs) -> ReturnT:
            ask: OfText[P, ReturnT] = cached if len(text) <= max_length else function
            return ask(text, *args, **kwargs)

        return call

    return decorate


@cached_by_text(16_384)
def shared_text(text: str) -> str:
    """One object for equal texts that many objects hold. Python 3.12 never frees an interned string."""
    return text
