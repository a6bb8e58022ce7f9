"""Choosing among values: the fewer draws, the faster; and how many examples a property is tested with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import combinations, product
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]

FACTOR = float(os.environ.get("MOORAGE_EXAMPLES", "1"))
"""Multiplies the number of examples: `MOORAGE_EXAMPLES=30 pytest ...` hunts longer."""


def examples(count: int, **more: Any) -> settings:
    """Settings for a property that is tested with so many examples."""
    return settings(max_examples=max(1, int(count * FACTOR)), **more)


def one_of(*values: T) -> st.SearchStrategy[T]:
    """One of these values; failures shrink towards the first."""
    return st.sampled_from(values)


def any_of(make: Callable[..., T], *choices: Iterable[Any]) -> st.SearchStrategy[T]:
    """`make` of any combination of choices."""
    return from_pool(make(*chosen) for chosen in product(*choices))


def from_pool(values: Iterable[T]) -> st.SearchStrategy[T]:
    """One of many values, chosen by index: Hypothesis would show all that `sampled_from` is given."""
    pool = list(values)
    index = st.integers(0, len(pool) - 1)

    @st.composite
    def pooled(draw: Draw[int]) -> T:
        return pool[draw(index)]

    return pooled()


def subset(values: Iterable[T], most: int = 2) -> list[list[T]]:
    """All subsets with at most so many members, the smaller first."""
    known = list(values)
    return [list(chosen) for size in range(most + 1) for chosen in combinations(known, size)]


def present(**choices: tuple[str | None, ...]) -> list[dict[str, str]]:
    """All dicts with one of several values for each key; None leaves the key out."""
    return [
        {key: value for key, value in zip(choices, chosen, strict=True) if value is not None}
        for chosen in product(*choices.values())
    ]


MAYBE = st.booleans()
SELDOM = one_of(False, False, False, True)
MOSTLY = one_of(True, True, True, False)
RARELY = st.sampled_from((False,) * 11 + (True,))
