"""CHANGELOG.md, in the form of Keep a Changelog: versions, groups and entries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from tools.interface.listing import Line

GROUPS: Final = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
"""The groups of a version, in their order."""
_VERSION: Final = re.compile(r"## \[(?P<name>[^\]]+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?")
_WORD: Final = re.compile(r"[^\s`*,;()\[\]]+")


class Release(NamedTuple):
    """A section of the file."""

    name: str
    """The version, or `Unreleased`."""
    date: str
    """When it was released; empty: it is not."""
    groups: dict[str, list[str]]
    """Entries by group, each on one line."""


def releases(text: str) -> list[Release]:
    """The sections of the file; ValueError for a heading that is none of a version or group."""
    found: list[Release] = []
    group: list[str] = []
    for line in text.splitlines():
        if line.startswith("## "):
            if (match := _VERSION.fullmatch(line)) is None:
                raise ValueError(f"not the heading of a version: {line}")
            found.append(Release(match["name"], match["date"] or "", {}))
        elif line.startswith("### "):
            name = line.removeprefix("### ")
            if name not in GROUPS:
                raise ValueError(f"{name}: none of {', '.join(GROUPS)}")
            group = found[-1].groups.setdefault(name, [])
        elif line.startswith("- "):
            group.append(line.removeprefix("- "))
        elif line.startswith("  ") and group:
            group[-1] += f" {line.strip()}"
    return found


def missing(lines: Iterable[Line], groups: dict[str, list[str]]) -> Iterator[Line]:
    """The unreleased lines that no entry of their group names.

    An entry names a line if it has all words of its name; or if it has those of another unreleased line of
    that group of which this one is a part, such as a new command with its options.
    """
    by_group: dict[str, list[Line]] = {}
    for line in lines:
        by_group.setdefault(line.group, []).append(line)
    for group, those in by_group.items():
        entries = [_words(entry) for entry in groups.get(group, ())]
        named = [line.name for line in those if any(_words(line.name) <= entry for entry in entries)]
        if group:
            yield from (line for line in those if not any(_is_part(line.name, whole) for whole in named))


def _is_part(name: str, whole: str) -> bool:
    return name == whole or name.startswith((f"{whole} ", f"{whole}."))


def _words(text: str) -> set[str]:
    return {word.rstrip('.:"').lstrip('"') for word in _WORD.findall(text)}
