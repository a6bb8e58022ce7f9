"""Objects as plain JSON values, as clients of an API server write them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

Manifest: TypeAlias = dict[str, Any]
Now: TypeAlias = Callable[[], datetime]
"""The current time, for timestamps in objects."""


def utc_now() -> datetime:
    """The time, from the machine's clock."""
    return datetime.now(UTC)


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


def status_of(obj: Manifest) -> Manifest:
    """An object's status, not to be changed."""
    status: Manifest = obj.get("status") or {}
    return status


def take(target: Manifest, source: Manifest, key: str) -> None:
    """Copy a field from another object, or remove it where that has none."""
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def without_nulls(value: Any) -> Any:
    """A copy whose objects have no fields that are null; items of lists may be."""
    if isinstance(value, dict):
        return {
            key: without_nulls(item) if isinstance(item, dict | list) else item
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        return [without_nulls(item) if isinstance(item, dict | list) else item for item in value]
    return value


def copy(value: Any) -> Any:
    """A copy that shares no container with the original."""
    if isinstance(value, dict):
        return {key: copy(item) if isinstance(item, dict | list) else item for key, item in value.items()}
    if isinstance(value, list):
        return [copy(item) if isinstance(item, dict | list) else item for item in value]
    return value


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_SECONDS = 24 * 60 * 60
_SECOND = timedelta(seconds=1)


def timestamp(moment: datetime) -> str:
    """A time as metadata carries it: whole seconds, UTC."""
    return _second_text((moment - _EPOCH) // _SECOND)


@lru_cache(maxsize=256)
def _second_text(second: int) -> str:
    """A second since 1970 as text; cached, because many timestamps share a second."""
    return (_EPOCH + second * _SECOND).replace(tzinfo=None).isoformat() + "Z"


def micro_timestamp(moment: datetime) -> str:
    """A time as leases and events carry it: microseconds, UTC."""
    since = moment - _EPOCH
    return f"{_second_text(since.days * _DAY_SECONDS + since.seconds)[:-1]}.{since.microseconds:06d}Z"


def microseconds(moment: datetime) -> int:
    """A time in microseconds since 1970, as columns have it."""
    return round(moment.timestamp() * 1_000_000)


def moment(text: str) -> datetime:
    """The time of a timestamp."""
    return datetime.fromisoformat(text)
