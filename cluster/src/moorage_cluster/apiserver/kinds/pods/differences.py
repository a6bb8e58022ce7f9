"""Semantic comparison of two parts of a pod, and a description of the differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

_ABSENT: Final = object()
_ZERO_IS_ABSENT: Final = frozenset(
    (
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "stdin",
        "stdinOnce",
        "tty",
        "readOnly",
        "initialDelaySeconds",
        "hostPort",
    )
)
"""Fields in which false or 0 equals absent; in other fields it may have been set deliberately."""
_MAX_LINES: Final = 20


def same(new: Any, old: Any) -> bool:
    """Whether two values are semantically equal: empty equals absent."""
    return new == old or next(_differences(new, old, ""), None) is None


def described(new: Any, old: Any, path: str) -> str:
    """The differences of two values, each as a line with the old value and a line with the new one."""
    lines: list[str] = []
    for where, now, before in _differences(new, old, path):
        if len(lines) >= _MAX_LINES:
            lines.append("  ...")
            break
        lines += (f"- {where}: {_shown(before)}", f"+ {where}: {_shown(now)}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "<absent>"
    return msgspec.json.encode(value).decode()


def _differences(new: Any, old: Any, path: str, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    if new == old or (_is_absent(new, key) and _is_absent(old, key)):
        return
    if isinstance(new, dict) and isinstance(old, dict):
        for name in dict.fromkeys((*old, *new)):
            yield from _differences(
                new.get(name, _ABSENT), old.get(name, _ABSENT), f"{path}.{name}" if path else name, name
            )
    elif isinstance(new, list) and isinstance(old, list):
        for index in range(max(len(new), len(old))):
            now = new[index] if index < len(new) else _ABSENT
            before = old[index] if index < len(old) else _ABSENT
            if now is _ABSENT or before is _ABSENT:
                yield f"{path}[{index}]", now, before
            else:
                yield from _differences(now, before, f"{path}[{index}]")
    else:
        yield path, new, old


def _is_absent(value: Any, key: str) -> bool:
    if value is _ABSENT or value is None or value == "" or value == [] or value == {}:
        return True
    return not value and key in _ZERO_IS_ABSENT
