"""Running a coroutine that does not suspend to its end."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_without_suspending(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that does not suspend; RuntimeError if it does."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("the coroutine suspended; await it instead")
