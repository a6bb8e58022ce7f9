"""What selectors can tell of a pod."""

from __future__ import annotations

from typing import NamedTuple

Label = tuple[str, str]
"""A label's key and value."""


class PodClass(NamedTuple):
    """What selectors can tell of a pod; two pods of a class are the same to every selector."""

    namespace: str
    labels: frozenset[Label]
    terminating: bool
