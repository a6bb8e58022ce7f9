"""The arguments of FairShare."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, Literal

from moorage import Duration, Struct

MIN_WEIGHT: Final = 0.001
MAX_WEIGHT: Final = 1_000_000.0
_WEIGHTS: Final = f"a number from {MIN_WEIGHT} to {MAX_WEIGHT:.0f}"
_MIN_HALF_LIFE_SECONDS: Final = 1.0

_NAME: Final = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_LABEL_KEY: Final = re.compile(rf"([a-z0-9]([a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_NAME}")


class FairShareArgs(Struct):
    """How FairShare orders the queue.

    owner_label: the label whose value is a pod's owner; empty: the namespace is.
    weights: by owner; an owner with weight 2 may have twice the share of one with weight 1.
    default_weight: of owners without a weight of their own.
    half_life: the time in which past use fades to a half; 0: only what owners have now counts.
    resources: the resources that count; empty: all of them, and the number of pods.
    priority: whether pods of higher priority precede the pods of all owners, or only those of their own.
    """

    owner_label: str = ""
    weights: Mapping[str, float] = {}
    default_weight: float = 1.0
    half_life: Duration = Duration(0)
    resources: tuple[str, ...] = ()
    priority: Literal["AcrossOwners", "WithinOwner"] = "AcrossOwners"

    def __post_init__(self) -> None:
        if self.owner_label and not _LABEL_KEY.fullmatch(self.owner_label):
            raise ValueError(f"ownerLabel: {self.owner_label!r} is not a label key, such as example.com/team")
        for owner, weight in self.weights.items():
            _check_weight(f"weights[{owner}]", weight)
        _check_weight("defaultWeight", self.default_weight)
        if self.half_life and not self.half_life >= _MIN_HALF_LIFE_SECONDS:
            raise ValueError(f"halfLife: {self.half_life} is neither 0s nor at least 1s")
        if "" in self.resources:
            raise ValueError("resources: a resource has no name; write its name, such as cpu")


def _check_weight(field: str, weight: float) -> None:
    if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        raise ValueError(f"{field}: {weight} is not {_WEIGHTS}")


def parsed_weight(text: str) -> float:
    """A weight as text; ValueError if it is not one."""
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        raise ValueError(f"{text!r} is not {_WEIGHTS}")
    return weight
