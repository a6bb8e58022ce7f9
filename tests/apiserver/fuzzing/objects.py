"""Objects made from the wire format: any known field, with a value of its type or nearly so."""

from __future__ import annotations

from random import Random
from typing import Any

from moorage.apimachinery.schema.wire import TypeUse, WireField, WireType
from tests.apiserver.client import GROUPS_SERVED
from tests.apiserver.fuzzing.values import FLOATS, MOMENTS, NUMBERS, QUANTITIES, WORDS, chance, strange, text

_MAX_DEPTH = 7
_SMALL_NUMBERS = 11
"""So many of the first numbers are small enough for most fields."""
_BYTES = ("", "aGVsbG8=", "aGVsbG8", "!!", "aGk=\n", "_-8=", "AAAA")


class Maker:
    """Makes values of types."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def of_type(self, wire: WireType, depth: int = 0) -> Any:
        """A value of a struct, with few fields where it is deep."""
        random = self._random
        if wire.untyped:
            return strange(random)
        share = 0.5 if depth < 2 else 0.25
        made: dict[str, Any] = {}
        for known in wire.fields:
            if (known.required and not chance(random, 12)) or random.random() < share:
                made[known.name] = self.of_field(known, depth)
        return made

    def of_field(self, known: WireField, depth: int = 0) -> Any:
        """A value of a field."""
        if chance(self._random, 60):
            return strange(self._random)
        if known.enum and not chance(self._random, 10):
            one = self._random.choice(known.enum)
            return [one] if known.type.word == "list" else {one: one} if known.type.word == "map" else one
        return self.of_use(known.type, depth)

    def of_use(self, use: TypeUse, depth: int) -> Any:
        """A value of a type."""
        random = self._random
        if depth > _MAX_DEPTH:
            return random.choice((None, {}, []))
        match use.word:
            case "struct":
                return self.of_type(use.struct, depth + 1)
            case "list" if use.items:
                return [self.of_use(use.items, depth + 1) for _ in range(random.choice((0, 1, 1, 2, 3)))]
            case "map" if use.items:
                return {text(random): self.of_use(use.items, depth + 1) for _ in range(random.randrange(3))}
            case "string":
                return text(random)
            case "int32" | "int64":
                return random.choice(NUMBERS[:_SMALL_NUMBERS] if not chance(random, 5) else NUMBERS)
            case "double":
                return random.choice(FLOATS)
            case "bool":
                return chance(random, 2)
            case "bytes":
                return random.choice(_BYTES)
            case "Quantity":
                return random.choice(QUANTITIES)
            case "IntOrString":
                return random.choice((1, 0, -1, "50%", "101%", "http", "", "1", 2**40))
            case "Time" | "MicroTime":
                return random.choice(MOMENTS)
        return strange(random)

    def enrich(self, value: Any, wire: WireType) -> None:
        """Set one more known field, somewhere in an object of a type; what leads there is made if need be."""
        random = self._random
        while isinstance(value, dict) and wire.fields and not wire.untyped:
            inside = [known for known in wire.fields if _struct_in(known) and known.name != "metadata"]
            there = [known for known in inside if value.get(known.name)]
            if not inside or chance(random, 4):
                known = random.choice(wire.fields)
                value[known.name] = self.of_field(known, 1)
                return
            known = random.choice(there if there and not chance(random, 3) else inside)
            wire = GROUPS_SERVED.types.type(_struct_in(known))
            value = self._step(value, known, wire)

    def _step(self, value: dict[str, Any], known: WireField, wire: WireType) -> Any:
        """The struct in a field: one that is there, or a new one."""
        held = value.get(known.name)
        if known.type.word == "struct":
            if not held:
                held = value[known.name] = self.of_type(wire, 3)
            return held
        if not isinstance(held, list) or not held:
            held = value[known.name] = [self.of_type(wire, 3)]
        return self._random.choice(held)


def _struct_in(known: WireField) -> str:
    """The type of the struct that a field holds, or a list of them; empty: it holds something else."""
    use = known.type.items if known.type.word == "list" else known.type
    return use.name if use is not None and use.word == "struct" else ""


def field_names() -> tuple[str, ...]:
    """Names of fields that mean something in some place, to put them in others."""
    names = {known.name for wire in GROUPS_SERVED.types for known in wire.fields}
    return tuple(sorted(names) + list(WORDS))
