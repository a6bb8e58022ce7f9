"""Our own schema: one pod a line or row, in the order in which they arrive.

A line of JSON (`.jsonl`), a line of a table with a header (`.csv`), both also compressed with gzip, or a
row of a Parquet file (`.parquet`) has these fields:

| field | meaning |
|---|---|
| arrival | when the pod is created, in seconds since the start; required |
| duration | how long it runs once it is bound, in seconds; without it, until it is deleted |
| cpu, memory, ephemeral-storage, hugepages-SIZE | requests, as quantities: `500m`, `2Gi` |
| any other with a slash | an extended resource: `nvidia.com/gpu` |
| name, namespace | by default `pod-LINE` and `default` |
| priority | an integer |
| age | how long it existed before the start, in seconds, where it was recorded; a simulation ignores it |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from moorage.api.decode import InputError
from moorage.api.quantity import parse_quantity
from moorage.simulation.tables import need_pyarrow
from moorage.simulation.traces import values
from moorage.simulation.traces.pods import CPU, DEFAULT_NAMESPACE, MEMORY, TracePod
from moorage.simulation.traces.source import BadLineError, TraceSource

ARRIVAL: Final = "arrival"
NUMBERS: Final = (ARRIVAL, "duration", "age")
"""The fields with numbers of seconds."""
TEXTS: Final = ("namespace", "name")
PRIORITY: Final = "priority"
_FIELDS: Final = frozenset((*NUMBERS, *TEXTS, PRIORITY))
_BATCH_ROWS: Final = 4096
"""Number of rows of a Parquet file that are in memory."""
Row = Mapping[str, Any]


def read_pods(source: TraceSource) -> Iterator[TracePod]:
    """The pods of a trace in our schema."""
    kind = source.path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "jsonl":
        return source.pods(source.objects(), _pod)
    if kind == "csv":
        return source.pods(source.table((ARRIVAL,)), _pod)
    if kind == "parquet":
        return source.pods(_parquet_rows(source), _pod, "row")
    expected = "the name of a trace ends in .jsonl, .csv (or either with .gz) or .parquet"
    raise InputError(str(source.path), expected)


def _parquet_rows(source: TraceSource) -> Iterator[tuple[int, Row]]:
    """The rows of a Parquet file, by row groups."""
    where = str(source.path)
    need_pyarrow(source.path)
    import pyarrow
    from pyarrow import parquet

    try:
        with source.path.open("rb") as opened, parquet.ParquetFile(opened) as file:
            names = file.schema_arrow.names
            for name in (each for each in names if not _is_field(each)):
                raise InputError(
                    where, f"unknown column {name}; expected {ARRIVAL}, duration, cpu, memory, ..."
                )
            if ARRIVAL not in names:
                raise InputError(where, f"there is no column {ARRIVAL}")
            number = 0
            for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield number, {name: value for name, value in row.items() if value is not None}
    except pyarrow.ArrowException as error:
        raise InputError(where, f"not a readable Parquet file: {str(error).splitlines()[0]}") from None
    except OSError as error:
        raise InputError(where, error.strerror or str(error).splitlines()[0]) from None


def _is_field(name: str) -> bool:
    return name in _FIELDS or is_resource(name)


def is_resource(name: str) -> bool:
    """Whether a field is a resource."""
    return name in (CPU, MEMORY, "ephemeral-storage") or "/" in name or name.startswith("hugepages-")


def _pod(line: int, row: Row) -> Iterable[TracePod]:
    resources = sorted(row.keys() - _FIELDS)
    for name in resources:
        if not is_resource(name):
            raise BadLineError(f"unknown field {name}")
    at_seconds, duration, age = (_seconds(row, name) for name in NUMBERS)
    if at_seconds is None:
        raise BadLineError(f"{ARRIVAL} is missing")
    pod = TracePod(
        at_seconds,
        line,
        str(row.get("name") or f"pod-{line}"),
        duration,
        tuple((name, _quantity(name, str(row[name]))) for name in resources),
        str(row.get("namespace") or DEFAULT_NAMESPACE),
        values.integer(row.get(PRIORITY, 0), PRIORITY),
        age_seconds=age or 0.0,
    )
    return (pod,)


def _seconds(row: Row, name: str) -> float | None:
    value = row.get(name)
    return None if value is None else values.seconds(value, name)


def _quantity(name: str, text: str) -> str:
    try:
        amount = parse_quantity(text)
    except ValueError as error:
        raise BadLineError(f"{name}: {error}") from None
    if amount < 0:
        raise BadLineError(f"{name}: {text} is negative")
    return text
