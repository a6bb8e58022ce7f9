"""Which part of a container's log is requested: the query of `kubectl logs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from moorage.api.manifests import moment
from moorage.apimachinery import errors

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LogOptions:
    """PodLogOptions, as far as they are implemented."""

    follows: bool = False
    is_previous: bool = False
    has_timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: datetime | None = None

    @classmethod
    def of(cls, query: Mapping[str, str], now: datetime) -> LogOptions:
        """The options of a request; ApiError if one is invalid."""
        seconds = _number(query, "sinceSeconds")
        return cls(
            follows=_is_true(query, "follow"),
            is_previous=_is_true(query, "previous"),
            has_timestamps=_is_true(query, "timestamps"),
            tail_lines=_number(query, "tailLines"),
            limit_bytes=_number(query, "limitBytes"),
            since=_since_time(query) if seconds is None else now - timedelta(seconds=seconds),
        )

    def includes(self, at: datetime) -> bool:
        """Whether a line of that time is recent enough."""
        return self.since is None or at >= self.since

    def latest(self, lines: Sequence[T]) -> Sequence[T]:
        """The last lines, as many as were requested."""
        if self.tail_lines is None or self.tail_lines >= len(lines):
            return lines
        return lines[len(lines) - self.tail_lines :]

    def limited(self, text: bytes) -> bytes:
        """The text up to the requested number of bytes."""
        return text if self.limit_bytes is None else text[: self.limit_bytes]


def _is_true(query: Mapping[str, str], name: str) -> bool:
    return query.get(name) in ("true", "1")


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not text.isdecimal():
        raise errors.bad_request(f"{name}: {text!r} is not a number")
    return int(text)


def _since_time(query: Mapping[str, str]) -> datetime | None:
    text = query.get("sinceTime", "")
    try:
        return moment(text) if text else None
    except ValueError:
        raise errors.bad_request(f"sinceTime: {text!r} is not a time") from None
