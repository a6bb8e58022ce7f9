"""Values to choose among at random, with weights or without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

from moorage.api.decode import InputError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Weighted(Generic[T]):
    """Values, each with a weight."""

    values: Sequence[T]
    weights: Sequence[float]


Choices = Sequence[T] | Weighted[T]
"""Values to choose among: those of a sequence are equally likely."""


def choose(choices: Choices[T], random: Random) -> T:
    """One of the values."""
    if isinstance(choices, Weighted):
        return random.choices(choices.values, choices.weights)[0]
    return random.choice(choices)


def parse_choices(text: str, option: str, read: Callable[[str], T]) -> Choices[T]:
    """Values in the form `100m,500m,2`, or with weights, `100m:5,500m:3,2:1`; InputErrors name the option.

    read: reads one value; ValueError if it cannot be read. Without a weight, a value has 1.
    """
    values, weights = [], []
    for part in text.split(","):
        value, colon, weight = part.strip().partition(":")
        try:
            values.append(read(value))
        except ValueError as error:
            raise InputError(option, str(error)) from None
        weights.append(_weight(weight, part, option) if colon else 1.0)
    return Weighted(values, weights) if ":" in text else values


def _weight(text: str, part: str, option: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0 < weight < float("inf"):
        raise InputError(option, f"{part}: expected a weight above 0 after the colon")
    return weight
