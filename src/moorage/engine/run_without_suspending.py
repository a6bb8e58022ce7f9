"""Running to the end what could pause but does not."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_without_suspending(work: Coroutine[Any, Any, T]) -> T:
    """What comes of some work that has nothing to wait for; RuntimeError if it waits nevertheless."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("this cycle waits for somebody, and who asked for it does not")
