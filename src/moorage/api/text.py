"""Small pieces of text that Kubernetes writes in a way of its own."""

from __future__ import annotations

from typing import Final

import msgspec

_LONGEST_PATH_KEY: Final = 512


def quoted(text: str) -> str:
    """Text in double quotes, with what cannot be printed escaped."""
    return msgspec.json.encode(text).decode()


def shortened(text: str, most_characters: int) -> str:
    """Text without what is beyond a length, which three dots then stand for."""
    return text if len(text) <= most_characters else f"{text[:most_characters]}..."


def path_key(key: str) -> str:
    """A key of a map as paths show it: a long one is not repeated in the path of all that is below it."""
    return shortened(key, _LONGEST_PATH_KEY)


def qualified(name: str, group: str) -> str:
    """A resource or kind with its group, as messages name it: `pods`, `deployments.apps`."""
    return f"{name}.{group}" if group else name
