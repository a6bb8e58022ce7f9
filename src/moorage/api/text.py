"""Text formats that are specific to Kubernetes."""

from __future__ import annotations

from typing import Final

import msgspec

_MAX_PATH_KEY_LENGTH: Final = 512


def quoted(text: str) -> str:
    """Text in double quotes, with unprintable characters escaped."""
    return msgspec.json.encode(text).decode()


def go_quoted(text: str) -> str:
    """Text as Go's `%q` quotes it: what is not printable is escaped in Go's way, not in JSON's."""
    return f'"{"".join(map(_go_escaped, text))}"'


def _go_escaped(character: str) -> str:
    if character in _GO_ESCAPES:
        return _GO_ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_GO_ESCAPES: Final = {
    '"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
    "\v": "\\v",
}  # fmt: skip


def shortened(text: str, most_characters: int) -> str:
    """Text truncated to a length, with three dots in place of the rest."""
    return text if len(text) <= most_characters else f"{text[:most_characters]}..."


def path_key(key: str) -> str:
    """A key of a map as paths show it: a long one is not repeated in the path of all that is below it."""
    return shortened(key, _MAX_PATH_KEY_LENGTH)


def qualified(name: str, group: str) -> str:
    """A resource or kind with its group, as messages name it: `pods`, `deployments.apps`."""
    return f"{name}.{group}" if group else name
