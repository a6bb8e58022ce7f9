"""Reading cells out of objects: what is missing or of another type counts as empty, and nothing raises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from moorage.api.manifests import Manifest
from moorage.api.selectors import SelectorError
from moorage.apimachinery.validation.selectors import labels_text, query_text
from moorage_cluster.apiserver.tables.base import since

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"
INVALID = "<invalid>"


def at(obj: Any, *path: str) -> Any:
    """The value at the end of a path of fields, None if the path ends early."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj


def text(obj: Any, *path: str) -> str:
    """The text at a path, empty if there is none."""
    value = at(obj, *path)
    return value if isinstance(value, str) else ""


def number(obj: Any, *path: str) -> int:
    """The integer at a path, 0 if there is none."""
    value = at(obj, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def mapping(obj: Any, *path: str) -> Manifest:
    """The object or map at a path, empty if there is none; not to be changed."""
    value = at(obj, *path)
    return value if isinstance(value, dict) else {}


def texts(obj: Any, *path: str) -> list[str]:
    """The texts in the list at a path."""
    value = at(obj, *path)
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def items(obj: Any, *path: str) -> list[Manifest]:
    """The objects in the list at a path."""
    value = at(obj, *path)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def condition(obj: Manifest, kind: str) -> Manifest | None:
    """The first of an object's status conditions of a type."""
    return next((each for each in items(obj, "status", "conditions") if each.get("type") == kind), None)


def has_condition(obj: Manifest, kind: str) -> bool:
    """Whether the first status condition of a type is true."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def being_deleted(obj: Manifest) -> bool:
    """Whether an object is being deleted."""
    return bool(at(obj, "metadata", "deletionTimestamp"))


def ago(moment: Any, now: datetime) -> str:
    """How long ago a time was; a time that cannot be read is invalid, not an error."""
    try:
        return since(moment, now)
    except (ValueError, TypeError, OverflowError):
        return INVALID


def comma_separated(parts: Iterable[str]) -> str:
    """Texts in one cell."""
    return ",".join(parts)


def labels_cell(labels: Mapping[str, Any]) -> str:
    """Labels in one cell, sorted by key."""
    return labels_text(labels) or NONE


def selector_cell(selector: Any, *, nothing: str = NONE, wrong: str = "<error>") -> str:
    """A label selector in one cell."""
    if not isinstance(selector, dict):
        return nothing
    try:
        return query_text(selector) or nothing
    except (SelectorError, TypeError, AttributeError):
        return wrong
