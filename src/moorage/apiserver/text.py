"""Small pieces of text that Kubernetes writes in a way of its own."""

from __future__ import annotations

import msgspec


def quoted(text: str) -> str:
    """Text in double quotes, with what cannot be printed escaped."""
    return msgspec.json.encode(text).decode()


def qualified(name: str, group: str) -> str:
    """A resource or kind with its group, as messages name it: `pods`, `deployments.apps`."""
    return f"{name}.{group}" if group else name
