"""Writing traces in our own schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import Any, Final

from moorage.simulation.tables import CSV, PARQUET, Column, form_of, text_file, write_table
from moorage.simulation.traces.moorage_schema import ARRIVAL, PRIORITY
from moorage.simulation.traces.pods import TracePod

_JSON: Final = ".jsonl"
_FORMS: Final = (_JSON, CSV, f"{_JSON}.gz", f"{CSV}.gz", PARQUET)
_VALUES: Final[dict[Column, Callable[[TracePod], Any]]] = {
    Column(ARRIVAL, float): lambda pod: pod.at_seconds,
    Column("duration", float): lambda pod: pod.duration_seconds,
    Column("namespace", str): lambda pod: pod.namespace,
    Column("name", str): lambda pod: pod.name,
    Column(PRIORITY, int): lambda pod: pod.priority,
    Column("age", float): lambda pod: pod.age_seconds or None,
}


def trace_form(path: Path) -> str:
    """The form of a trace in our schema, by the name of the file; InputError if it cannot be written."""
    return form_of(path, _FORMS, "trace")


def write_trace(path: Path, form: str, pods: Iterable[TracePod], resources: Iterable[str]) -> None:
    """Write pods, which are in the order of arrival; OSError if that is not possible.

    resources: all that they request.
    """
    names = sorted(resources)
    columns = [*_VALUES, *(Column(name, str) for name in names)]
    rows = (
        list(chain((value(pod) for value in _VALUES.values()), map(dict(pod.requests).get, names)))
        for pod in pods
    )
    if not form.startswith(_JSON):
        write_table(path, form, columns, rows)
        return
    with text_file(path, form) as file:
        for row in rows:
            given = {
                column.name: value for column, value in zip(columns, row, strict=True) if value is not None
            }
            file.write(json.dumps(given, separators=(",", ":"), ensure_ascii=False) + "\n")
