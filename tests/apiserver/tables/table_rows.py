"""Objects to show, and what their rows say by header."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from moorage.api.manifests import timestamp
from moorage_cluster.apiserver.tables.base import Printer
from moorage_cluster.apiserver.tables.registry import printer_for

NOW = datetime(2026, 3, 14, 12, 0, 0, tzinfo=UTC)


def before(**delta: float) -> str:
    """A time some while before now."""
    return timestamp(NOW - timedelta(**delta))


def an_object(_name: str = "x", _metadata: dict[str, Any] | None = None, **parts: Any) -> dict[str, Any]:
    """An object that is five minutes old."""
    return {
        "metadata": {"name": _name, "creationTimestamp": before(minutes=5), **(_metadata or {})},
        **parts,
    }


def cells(printer: Printer, obj: dict[str, Any]) -> dict[str, Any]:
    """A row by its headers; there is a cell for each."""
    row = printer.row(obj, NOW)
    headers = [column.name for column in printer.columns]
    assert len(set(headers)) == len(headers)
    return dict(zip(headers, row, strict=True))


def shown(group: str, kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    """A built-in kind's row by its headers."""
    return cells(printer_for(group, kind), obj)


def row(group: str, kind: str, obj: dict[str, Any]) -> list[Any]:
    """A built-in kind's row."""
    return list(shown(group, kind, obj).values())
