"""Workloads from a trace: one pod a line, in the order in which they arrive, read as it is needed.

A line of JSON (`.jsonl`), or of a table with a header (`.csv`), has these fields:

| field | meaning |
|---|---|
| arrival | when the pod is created, in seconds since the start; required |
| duration | how long it runs once it is bound, in seconds; without it, until it is deleted |
| cpu, memory | requests, as quantities: `500m`, `2Gi` |
| name, namespace | by default `pod-LINE` and `default` |
| priority | an integer |
| any other with a slash | an extended resource: `nvidia.com/gpu` |

Files may be compressed with gzip (`.jsonl.gz`).
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

from moorage.api.base import ObjectMeta
from moorage.api.decode import InputError
from moorage.api.pod import Container, Pod, PodSpec, ResourceRequirements
from moorage.api.quantity import parse_quantity
from moorage.simulation.workload import Arrival

_FIELDS: Final = frozenset(("arrival", "duration", "cpu", "memory", "name", "namespace", "priority"))
_RESOURCES: Final = ("cpu", "memory")
_MAX_SPECS: Final = 65_536
"""Maximum number of specs that are kept, so that pods with equal requests share one."""
Row = Mapping[str, Any]
BadLine = Callable[[str], None]


class _BadLineError(ValueError):
    """A line that is no pod."""


def read_trace(path: Path, skipped: BadLine | None = None) -> Iterator[Arrival]:
    """The pods of a trace; InputError for a line that is no pod.

    skipped: called with the message about such a line instead.
    """
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind not in ("jsonl", "csv"):
        raise InputError(str(path), "the name of a trace ends in .jsonl or .csv, or either with .gz")
    rows = _json_rows if kind == "jsonl" else _csv_rows
    specs: dict[tuple[Any, ...], PodSpec] = {}
    with _opened(path) as file:
        for line, row in rows(file):
            try:
                yield _arrival(row, line, specs)
            except _BadLineError as error:
                if skipped is None:
                    raise InputError(f"{path}: line {line}", str(error)) from None
                skipped(f"{path}: line {line}: {error}")


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8", newline="")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8", newline="")
        ) as file:
            yield file
    except UnicodeDecodeError:
        raise InputError(str(path), "not UTF-8 text") from None
    except (EOFError, gzip.BadGzipFile):
        raise InputError(str(path), "a broken gzip file") from None
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error)) from None


def _json_rows(file: TextIO) -> Iterator[tuple[int, Row | _BadLineError]]:
    for line, text in enumerate(file, 1):
        if text.strip():
            yield line, _parsed(text)


def _parsed(text: str) -> Row | _BadLineError:
    try:
        row = json.loads(text)
    except ValueError as error:
        return _BadLineError(f"not JSON: {error}")
    return row if isinstance(row, dict) else _BadLineError("not an object")


def _csv_rows(file: TextIO) -> Iterator[tuple[int, Row | _BadLineError]]:
    reader = csv.reader(file)
    header: list[str] | None = None
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield reader.line_num, _BadLineError(str(error))
            continue
        if header is None:
            header = cells
        elif len(cells) != len(header):
            yield reader.line_num, _BadLineError(f"{len(cells)} fields; the header has {len(header)}")
        else:
            cells_by_name = zip(header, cells, strict=True)
            yield reader.line_num, {name: cell for name, cell in cells_by_name if cell}


def _arrival(row: Row | _BadLineError, line: int, specs: dict[tuple[Any, ...], PodSpec]) -> Arrival:
    if isinstance(row, _BadLineError):
        raise row
    unknown = [key for key in row if key not in _FIELDS and "/" not in key]
    if unknown:
        raise _BadLineError(f"unknown field {unknown[0]}")
    at_seconds = _seconds(row, "arrival")
    if at_seconds is None:
        raise _BadLineError("arrival is missing")
    meta = ObjectMeta(
        name=str(row.get("name") or f"pod-{line}"), namespace=str(row.get("namespace") or "default")
    )
    pod = Pod(api_version="v1", kind="Pod", metadata=meta, spec=_spec(row, specs))
    return Arrival(at_seconds, pod, _seconds(row, "duration"))


def _seconds(row: Row, field: str) -> float | None:
    value = row.get(field)
    if value is None:
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        raise _BadLineError(f"{field}: {value!r} is not a number of seconds") from None
    if not 0 <= seconds < float("inf"):
        raise _BadLineError(f"{field}: {value!r} is not a number of seconds")
    return seconds


def _spec(row: Row, specs: dict[tuple[Any, ...], PodSpec]) -> PodSpec:
    """The spec of a pod; equal requests and priorities have one spec."""
    names = sorted(key for key in row if key in _RESOURCES or "/" in key)
    key = (*((name, str(row[name])) for name in names), row.get("priority"))
    known = specs.get(key)
    if known is not None:
        return known
    requests = {}
    for name in names:
        try:
            requests[name] = parse_quantity(str(row[name]))
        except ValueError as error:
            raise _BadLineError(f"{name}: {error}") from None
    container = Container(name="main", image="trace", resources=ResourceRequirements(requests=requests))
    spec = PodSpec(containers=(container,), priority=_priority(row))
    if len(specs) < _MAX_SPECS:
        specs[key] = spec
    return spec


def _priority(row: Row) -> int:
    value = row.get("priority", 0)
    try:
        return int(str(value))
    except ValueError:
        raise _BadLineError(f"priority: {value!r} is not an integer") from None
