"""Small pieces of text that Kubernetes writes in a way of its own."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec


def quoted(text: str) -> str:
    """Text in double quotes, with what cannot be printed escaped."""
    return msgspec.json.encode(text).decode()


def timestamp(moment: datetime) -> str:
    """A time as metadata carries it: whole seconds, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(moment: datetime) -> str:
    """A time as leases and events carry it: microseconds, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def qualified(name: str, group: str) -> str:
    """A resource or kind with its group, as messages name it: `pods`, `deployments.apps`."""
    return f"{name}.{group}" if group else name
