"""A plugin's arguments: what a configuration may say, and how it is told that it may not."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

import msgspec
import pytest

from moorage import Duration, Struct
from moorage.api.quantity import Quantity, parse_quantity
from moorage.framework.interface.arguments import ArgumentsError, typed_arguments


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Plain:
    favorite_number: int
    colours: list[str] = field(default_factory=list)
    patience: Duration = field(default_factory=lambda: Duration(1))
    mood: Literal["good", "bad"] = "good"
    colour: Colour = Colour.RED


class Camel(Struct):
    """As arguments are usually written."""

    favorite_number: int = 7
    zones: dict[str, float] = {}


class Amounts(Struct):
    """Amounts of resources, as manifests have them."""

    requests: dict[str, Quantity] = {}


class Even(msgspec.Struct):
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError(f"{self.number} is odd")


@dataclass
class Odd:
    a: int
    b: set[complex] = field(default_factory=set)


@dataclass
class Torn:
    a: Plain | Odd


ACCEPTED: dict[str, tuple[Any, Any, Any]] = {
    "nothing": (None, Camel, Camel()),
    "a dataclass": (
        {"favorite_number": 3, "colours": ["red"], "patience": "1m30s", "mood": "bad", "colour": "blue"},
        Plain,
        Plain(3, ["red"], Duration(90), "bad", Colour.BLUE),
    ),
    "in camelCase": (
        {"favoriteNumber": 3, "zones": {"a": 1}},
        Camel,
        Camel(favorite_number=3, zones={"a": 1.0}),
    ),
    "with a kind of its own": (
        {"apiVersion": "example.com/v1", "kind": "CamelArgs", "favoriteNumber": 3},
        Camel,
        Camel(favorite_number=3),
    ),
    "quantities": (
        {"requests": {"cpu": 2, "memory": "1.5Gi"}},
        Amounts,
        Amounts(requests={"cpu": parse_quantity("2"), "memory": parse_quantity("1.5Gi")}),
    ),
    "ready-made": (Camel(favorite_number=9), Camel, Camel(favorite_number=9)),
    "of no type": ({"a": [1]}, Any, {"a": [1]}),
    "of a mapping": ({"a": [1]}, dict[str, Any], {"a": [1]}),
}


@pytest.mark.parametrize(("args", "wanted", "expected"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_arguments_become_what_the_plugin_wants(args: Any, wanted: Any, expected: Any) -> None:
    assert typed_arguments(args, wanted) == expected


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "a wrong type": (
        {"favorite_number": "x"},
        Plain,
        'args.favorite_number: expected a whole number, got "x"',
    ),
    "a wrong element": (
        {"favorite_number": 1, "colours": ["red", 5]},
        Plain,
        "args.colours[1]: expected text, got a whole number",
    ),
    "a wrong choice": ({"favorite_number": 1, "mood": "sad"}, Plain, "args.mood: invalid enum value 'sad'"),
    "a duration without a unit": (
        {"favorite_number": 1, "patience": "5"},
        Plain,
        'args.patience: missing unit in duration "5"',
    ),
    "a duration that is a number": (
        {"favorite_number": 1, "patience": 5},
        Plain,
        "args.patience: expected a duration (like 15s, 1m30s or 100ms), got 5",
    ),
    "what is no quantity": (
        {"requests": {"cpu": "two"}},
        Amounts,
        "args.requests[...]: 'two' is not a quantity (like 100m, 1.5Gi or 2e3)",
    ),
    "what must be given": ({}, Plain, "args.favorite_number: Required value"),
    "a field that is not there": (
        {"favouriteNumber": 3},
        Camel,
        "args.favouriteNumber: unknown field; did you mean favoriteNumber?",
    ),
    "everything at once": (
        {"mood": 1, "x": 2},
        Plain,
        "args.mood: expected text, got 1; args.x: unknown field; args.favorite_number: Required value",
    ),
    "a list": ([1], Camel, "args: expected an object with the plugin's arguments"),
    "what the type itself objects to": ({"number": 3}, Even, "args: 3 is odd"),
    "what no file can hold": (
        {"a": 1, "b": [1]},
        Odd,
        "args.b[0]: complex cannot be read from a configuration",
    ),
    "a type that cannot be": ({"a": {}}, Torn, "the type of its args cannot be used: Type unions may not"),
}


@pytest.mark.parametrize(("args", "wanted", "complaint"), REFUSED.values(), ids=REFUSED.keys())
def test_arguments_that_are_wrong_are_named(args: Any, wanted: Any, complaint: str) -> None:
    with pytest.raises(ArgumentsError) as error:
        typed_arguments(args, wanted)
    assert str(error.value).startswith(complaint)
