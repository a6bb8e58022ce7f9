"""Custom resources: columns that users define with JSONPath."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.tables.base import AGE, Printer, TableColumn
from moorage_cluster.apiserver.tables.cells import INVALID, UNKNOWN, ago, number, text
from moorage_cluster.apiserver.tables.columns import NAMED, Cell, Columns, Shown
from moorage_cluster.apiserver.tables.jsonpath import JsonPath, PathError

_DEFAULT: Final = (
    {
        "name": AGE.name,
        "type": "date",
        "description": AGE.description,
        "jsonPath": ".metadata.creationTimestamp",
    },
)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_MAX_PLAIN_FLOAT = 1e21
"""The least number that is written with an exponent."""
_ESCAPED_IN_JSON: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def columns_of_custom(additional_printer_columns: list[dict[str, Any]] | None) -> Printer:
    """The table of a custom resource: its name, then the columns of its definition; without these, its age.

    An invalid path ends the table there: the columns before it are still shown.
    """
    shown = [NAMED]
    for definition in additional_printer_columns or _DEFAULT:
        try:
            shown.append(_column(definition))
        except PathError:
            break
    return Columns(*shown)


def _column(definition: Manifest) -> Shown:
    path = text(definition, "jsonPath")
    column = TableColumn(
        name=text(definition, "name"),
        type=text(definition, "type"),
        format=text(definition, "format"),
        description=text(definition, "description")
        or f"Custom resource definition column (in JSONPath format): {path}",
        priority=number(definition, "priority"),
    )
    return Shown(column, _cell(JsonPath(path), _CELLS.get(column.type, _of_unknown_type)))


def _cell(path: JsonPath, form: Callable[[Any, datetime], Any]) -> Cell:
    """Of several values only the first is shown."""

    def cell(obj: Manifest, now: datetime) -> Any:
        found = path.find(obj)
        return form(found[0], now) if found else None

    return cell


def _as_text(value: Any, _: datetime) -> str:
    match value:
        case str():
            return value
        case None:
            return "<no value>"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(_plain(value))
        case _:
            return msgspec.json.encode(value, order="sorted").decode().translate(_ESCAPED_IN_JSON)


def _plain(value: float) -> float:
    """Convert whole numbers to integers, as they are printed."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _MAX_PLAIN_FLOAT
    return int(value) if is_whole else value


def _as_integer(value: Any, _: datetime) -> int | None:
    return int(value) if _is_number(value) else None


def _as_number(value: Any, _: datetime) -> float | None:
    return _plain(value) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_boolean(value: Any, _: datetime) -> bool | None:
    return value if isinstance(value, bool) else None


def _as_age(value: Any, now: datetime) -> str | None:
    if not isinstance(value, str):
        return None
    if value in ("", "null"):
        return UNKNOWN
    return ago(value, now) if _TIME.fullmatch(value) else INVALID


def _of_unknown_type(value: Any, now: datetime) -> None:
    return None


_CELLS: Final[dict[str, Callable[[Any, datetime], Any]]] = {
    "string": _as_text,
    "integer": _as_integer,
    "number": _as_number,
    "boolean": _as_boolean,
    "date": _as_age,
}
