"""Objects as plain JSON values, as whoever writes them to an API server handles them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeAlias

Manifest: TypeAlias = dict[str, Any]


def metadata(obj: Manifest) -> Manifest:
    """An object's metadata; there is always some."""
    meta: Manifest = obj.setdefault("metadata", {})
    return meta


def child(obj: Manifest, key: str) -> Manifest:
    """A part of an object that is an object itself, made if it is not there."""
    part: Manifest = obj.setdefault(key, {})
    return part


def labels_of(obj: Manifest) -> dict[str, str]:
    """An object's labels, not to be changed."""
    labels: dict[str, str] = obj.get("metadata", {}).get("labels") or {}
    return labels


def annotations_of(obj: Manifest) -> dict[str, str]:
    """An object's annotations, not to be changed."""
    annotations: dict[str, str] = obj.get("metadata", {}).get("annotations") or {}
    return annotations


def copy(value: Any) -> Any:
    """A copy that shares no container with the original."""
    if isinstance(value, dict):
        return {key: copy(item) if isinstance(item, dict | list) else item for key, item in value.items()}
    if isinstance(value, list):
        return [copy(item) if isinstance(item, dict | list) else item for item in value]
    return value


def timestamp(moment: datetime) -> str:
    """A time as metadata carries it: whole seconds, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(moment: datetime) -> str:
    """A time as leases and events carry it: microseconds, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> datetime:
    """The time that a timestamp says."""
    return datetime.fromisoformat(text)
