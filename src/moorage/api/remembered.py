"""Values derived from an object, cached as long as the object exists."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class IdentityCache(Generic[T, R]):
    """Cached results of a function of pods or nodes, for a limited number of recent objects.

    Hints are called for thousands of waiting pods at each event: values that a hint derives from the pod
    alone should not be computed every time. Objects are immutable, so they are compared by identity; a
    result is dropped with its object.
    """

    def __init__(self, work_out: Callable[[T], R], at_most: int = 16_384) -> None:
        self._work_out = work_out
        self._at_most = at_most
        self._known: dict[int, tuple[weakref.ref[T], R]] = {}

    def __call__(self, item: T) -> R:
        """The function's result for an object."""
        key = id(item)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= self._at_most:
                self._known.clear()
            forget = self._known
            known = (weakref.ref(item, lambda _: forget.pop(key, None)), self._work_out(item))
            self._known[key] = known
        return known[1]

    def get(self, item: T) -> R | None:
        """The cached result for an object; None if there is none."""
        known = self._known.get(id(item))
        return None if known is None else known[1]

    def __len__(self) -> int:
        """Number of cached results."""
        return len(self._known)
