"""What was worked out of an object, for as long as the object is there."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Remembered(Generic[T, R]):
    """What a function says of pods or nodes; it is asked once about each of the last many.

    An event is put to thousands of waiting pods, and the next event to the same ones: what a hint works out
    of a pod alone it had better not work out every time. Objects never change, so identity tells them apart;
    what is known of one goes when the object does.
    """

    def __init__(self, work_out: Callable[[T], R], at_most: int = 16_384) -> None:
        self._work_out = work_out
        self._at_most = at_most
        self._known: dict[int, tuple[weakref.ref[T], R]] = {}

    def __call__(self, item: T) -> R:
        """What the function says of an object."""
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
        """What the function said of an object; None if it was not asked."""
        known = self._known.get(id(item))
        return None if known is None else known[1]

    def __len__(self) -> int:
        """Of how many objects something is known."""
        return len(self._known)
