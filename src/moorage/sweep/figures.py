"""The figures of a simulation that studies compare, by name."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from moorage.api.resource_requests import CPU, MEMORY
from moorage.simulation.records import Outcome
from moorage.simulation.results import SimulationResult, Utilisation, WaitingTimes

FIGURE_NAMES: Final = (
    "cost",
    "failedAttempts",
    "seconds",
    *(f"waitingSeconds.{name}" for name in WaitingTimes.__struct_encode_fields__),
    *(
        f"{figure}.{resource}.{name}"
        for figure in ("utilisation", "fragmentation")
        for resource in (CPU, MEMORY)
        for name in Utilisation.__struct_fields__
    ),
    *(f"pods.{name}" for name in ("Created", *map(str, Outcome))),
)
"""The names: those of fields of `moorage simulate -o json`."""

Figures = dict[str, float]
"""Values by name; a figure that a simulation does not have is missing."""


def figures_of(result: SimulationResult) -> Figures:
    """The figures of a simulation; there are no waiting times if no pod was bound."""
    plain = msgspec.to_builtins(replace(result, course=[], placements=[], pending=[]))
    values = ((name, _at(plain, name)) for name in FIGURE_NAMES)
    return {name: float(value) for name, value in values if value is not None}


def _at(plain: Any, name: str) -> Any:
    for step in name.split("."):
        plain = None if plain is None else plain.get(step)
    return plain
