"""What the largest machine of a trace has, where a trace gives amounts as a share of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moorage.api.decode import InputError
from moorage.api.quantity import Quantity, parse_quantity
from moorage.simulation.traces.format_names import DEFAULT_TRACE_UNIT


@dataclass(frozen=True, slots=True)
class TraceUnits:
    """The amounts that 1.0 (or 100, where shares are percentages) means."""

    cpu: Quantity
    memory: Quantity

    def cpu_milli(self, share: float) -> int:
        """A share of the machine's cpu, in milli-CPU."""
        return round(share * self.cpu.milli_value)

    def memory_bytes(self, share: float) -> int:
        """A share of the machine's memory, in bytes."""
        return round(share * self.memory.value)


def parse_units(text: str) -> TraceUnits:
    """Units in the form `cpu=64,memory=256Gi`, of which either may be left out; or InputError."""
    return TraceUnits(**{**_parsed(DEFAULT_TRACE_UNIT), **_parsed(text)})


def _parsed(text: str) -> dict[str, Quantity]:
    given = {}
    for part in text.split(","):
        key, equals, value = (each.strip() for each in part.partition("="))
        if not equals or key not in ("cpu", "memory"):
            raise InputError(f"trace unit {text!r}", f"{part!r} is not cpu=QUANTITY or memory=QUANTITY")
        try:
            amount = parse_quantity(value)
        except ValueError as error:
            raise InputError(f"trace unit {text!r}", f"{key}: {error}") from None
        if amount <= 0:
            raise InputError(f"trace unit {text!r}", f"{key}: expected more than 0")
        given[key] = amount
    return given


DEFAULT_UNITS: Final = parse_units(DEFAULT_TRACE_UNIT)
