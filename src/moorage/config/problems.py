"""The wording of configuration problems, and the error that carries all of them.

A problem is one line: the field, what is wrong, and the remedy. kube-scheduler's wording is kept, because
people search for it; where it has no remedy, one is added after a semicolon.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from moorage.api.decode import InputError
from moorage.config.duration import Duration


class ConfigError(InputError):
    """An invalid configuration; `problems` has one line for each reason."""

    def __init__(self, problems: Iterable[str], where: str = "") -> None:
        plain = tuple(one_line(problem) for problem in problems)
        super().__init__(where, "\n".join(plain))
        self.problems: tuple[str, ...] = tuple(
            f"{where}: {problem}" if where else problem for problem in plain
        )
        self.args = ("\n".join(self.problems),)


def one_line(text: str) -> str:
    """Text without line breaks, which values and keys may contain."""
    return " ".join(text.splitlines())


def child(path: str, name: str) -> str:
    """The path of a field below another."""
    return f"{path}.{name}" if path else name


def shown(value: Any) -> str:
    """A value as problems show it: compact JSON, durations in Go's notation."""
    if isinstance(value, Duration):
        value = str(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)


def invalid(path: str, value: Any, reason: str) -> str:
    """A value that the field does not allow."""
    return f"{path}: Invalid value: {shown(value)}: {reason}"


def required(path: str, reason: str = "") -> str:
    """A field that has to be set."""
    return f"{path}: Required value" + (f": {reason}" if reason else "")


def duplicate(path: str, value: Any, reason: str = "") -> str:
    """A value that may occur only once."""
    return f"{path}: Duplicate value: {shown(value)}" + (f": {reason}" if reason else "")


def unsupported(path: str, value: Any, supported: Iterable[str]) -> str:
    """A value that is none of the field's allowed ones."""
    return f"{path}: Unsupported value: {shown(value)}: supported values: " + ", ".join(map(shown, supported))


def forbidden(path: str, reason: str) -> str:
    """A field that must not be set here."""
    return f"{path}: Forbidden: {reason}"
