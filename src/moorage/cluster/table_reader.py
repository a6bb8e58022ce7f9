"""A reader of a table of objects: asks which objects have changed since it last asked."""

from __future__ import annotations

from typing import Any

from moorage.cluster.object_tables import ObjectTable


class TableReader:
    """Reads one table; if it is given another one, that is read from the beginning."""

    __slots__ = ("_position", "_table")

    def __init__(self) -> None:
        self._table: ObjectTable[Any] | None = None
        self._position = 0

    def changed_keys(self, table: ObjectTable[Any]) -> list[tuple[str, str]] | None:
        """Namespaces and names of what has changed since the last call; None if all has to be read again."""
        keys = table.changes.since(self._position) if table is self._table else None
        self._table, self._position = table, table.changes.position
        return keys
