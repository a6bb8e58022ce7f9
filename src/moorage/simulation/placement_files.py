"""Every pod of a simulation as a row of a table: the fields of `PodRecord`, by their names in JSON.

The last column says whether the simulation has come to its end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, get_args

import msgspec
from msgspec.structs import fields

from moorage.simulation.records import PodRecord
from moorage.simulation.results import SimulationResult
from moorage.simulation.tables import CSV, PARQUET, Column, form_of, write_table

_FORMS: Final = (CSV, f"{CSV}.gz", PARQUET)


def _kind(annotation: Any) -> type:
    """What a field has in a table: `float` for `float | None`, text for an enumeration."""
    (kind, *_) = get_args(annotation) or (annotation,)
    return str if issubclass(kind, str) else kind


COLUMNS: Final = [
    *(Column(field.encode_name, _kind(field.type)) for field in fields(PodRecord)),
    Column("complete", str),
]
"""The columns of a table of placements."""


def placement_form(path: Path) -> str:
    """The form of a table of placements, by the name of the file; InputError if it cannot be written."""
    return form_of(path, _FORMS, "table of placements")


def write_placements(path: Path, form: str, result: SimulationResult) -> None:
    """Write all pods; OSError if that is not possible."""
    is_complete = str(result.complete).lower()
    rows = ([*msgspec.to_builtins(pod).values(), is_complete] for pod in result.placements)
    write_table(path, form, COLUMNS, rows)
