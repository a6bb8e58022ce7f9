"""What selectors can distinguish of a pod."""

from __future__ import annotations

from typing import NamedTuple

Label = tuple[str, str]
"""A label's key and value."""


class PodClass(NamedTuple):
    """What selectors can distinguish of a pod; every selector matches all pods of a class or none."""

    namespace: str
    labels: frozenset[Label]
    terminating: bool
