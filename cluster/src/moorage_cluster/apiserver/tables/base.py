"""How a kind is shown as a row of a table, and the columns every kind has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from moorage.api.manifests import Manifest


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of a table."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    """Above 0: only shown with `-o wide`."""


class Printer(Protocol):
    """What a kind's table shows."""

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        """The columns, in order."""

    def row(self, obj: Manifest, now: datetime) -> list[Any]:
        """One object's cells, as many as there are columns."""


NAME = TableColumn("Name", format="name", description="The object's name, unique in its namespace.")
AGE = TableColumn("Age", description="How long ago the object was created.")


class NameAndAge:
    """The table of a kind without columns of its own."""

    columns = (NAME, AGE)

    def row(self, obj: Manifest, now: datetime) -> list[Any]:
        """Name and age."""
        return [obj["metadata"].get("name", ""), age(obj, now)]


NAME_AND_AGE = NameAndAge()


def age(obj: Manifest, now: datetime) -> str:
    """How long ago an object was created."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def since(moment: str | None, now: datetime) -> str:
    """How long ago a time was, in kubectl's short form; `<unknown>` if there is none."""
    if not moment:
        return "<unknown>"
    then = datetime.fromisoformat(moment)
    return human_duration((now.astimezone(UTC) - then).total_seconds())


def human_duration(seconds: float) -> str:
    """A duration the way kubectl shows ages: `42s`, `5m30s`, `3h12m`, `2d4h`, `400d`, `3y20d`."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    if total < 0:
        return "0s"
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 60 * 2:
        return f"{total}s"
    if minutes < 10:
        return _pair(minutes, "m", total % 60, "s")
    if minutes < 60 * 3:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        return _pair(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
