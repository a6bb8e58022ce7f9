"""Tables as lists of columns: each is a header and how its cell is read from an object."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.tables.base import AGE, NAME, TableColumn
from moorage_cluster.apiserver.tables.cells import ago, at, number, text

Cell: TypeAlias = Callable[[Manifest, datetime], Any]


class Shown(NamedTuple):
    """A column's header and its cells."""

    column: TableColumn
    cell: Cell


class Columns:
    """A table defined by its columns."""

    def __init__(self, *shown: Shown) -> None:
        self.columns: tuple[TableColumn, ...] = tuple(each.column for each in shown)
        self._cells = tuple(each.cell for each in shown)

    def row(self, obj: Manifest, now: datetime) -> list[Any]:
        """One object's cells."""
        return [cell(obj, now) for cell in self._cells]


def timed(name: str, cell: Cell, description: str) -> Shown:
    """A column with a text that depends on the current time."""
    return Shown(TableColumn(name, description=description), cell)


def derived(
    name: str,
    cell: Callable[[Manifest], Any],
    description: str,
    *,
    type: str = "string",
    format: str = "",
    wide: bool = False,
) -> Shown:
    """A column worked out from the whole object; a wide one is shown with `-o wide` only."""
    return Shown(TableColumn(name, type, format, description, priority=int(wide)), lambda obj, _: cell(obj))


def text_at(
    name: str,
    path: str,
    description: str,
    *,
    missing: str = "",
    empty: str = "",
    format: str = "",
    wide: bool = False,
) -> Shown:
    """A column with the text at a dotted path; `missing` stands for no field, `empty` for no text."""
    fields = path.split(".")

    def cell(obj: Manifest) -> str:
        if missing and at(obj, *fields) is None:
            return missing
        return text(obj, *fields) or empty

    return derived(name, cell, description, format=format, wide=wide)


def count_at(name: str, path: str, description: str, *, type: str = "integer") -> Shown:
    """A column with the integer at a dotted path, 0 if there is none."""
    fields = path.split(".")
    return derived(name, lambda obj: number(obj, *fields), description, type=type)


def size_of(name: str, path: str, description: str, *, type: str = "integer") -> Shown:
    """A column with the number of entries in the list or map at a dotted path."""
    fields = path.split(".")

    def cell(obj: Manifest) -> int:
        value = at(obj, *fields)
        return len(value) if isinstance(value, list | dict) else 0

    return derived(name, cell, description, type=type)


def flag_at(name: str, path: str, description: str, *, type: str = "boolean", default: bool = False) -> Shown:
    """A column with the boolean at a dotted path."""
    fields = path.split(".")

    def cell(obj: Manifest) -> bool:
        value = at(obj, *fields)
        return value if isinstance(value, bool) else default

    return derived(name, cell, description, type=type)


def name_of(obj: Manifest) -> str:
    """An object's name."""
    return text(obj, "metadata", "name")


def age_of(obj: Manifest, now: datetime) -> str:
    """How long ago an object was created."""
    return ago(at(obj, "metadata", "creationTimestamp"), now)


def created_at(obj: Manifest) -> str:
    """When an object was created; the zero time if that is missing."""
    return text(obj, "metadata", "creationTimestamp") or "0001-01-01T00:00:00Z"


NAMED = Shown(NAME, lambda obj, _: name_of(obj))
AGED = Shown(AGE, age_of)
NAME_AND_CREATION = Columns(
    NAMED, derived("Created At", created_at, "When the object was created.", type="date")
)
"""The table of the few kinds that show a date instead of an age."""
