"""Listings: facts with the version since which each is as it is.

A line is `NAME | WHAT | since VERSION`, with `, changed VERSION` where it was different once, and with
`, removed VERSION` where it is no more. What has not been released yet has the version `unreleased`: the
section of CHANGELOG.md that is called so has to name it (`changelog.missing`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from tools.interface.fact import Fact

UNRELEASED: Final = "unreleased"
_LINE: Final = re.compile(
    r"(?P<name>.+?) \| (?P<what>.*) \| since (?P<since>\S+?)"
    r"(?:, changed (?P<changed>\S+?))?(?:, removed (?P<removed>\S+))?"
)


class Line(NamedTuple):
    """A fact, and the versions in which something happened to it; empty: it did not."""

    name: str
    what: str
    since: str
    changed: str = ""
    removed: str = ""

    @classmethod
    def read(cls, text: str) -> Self:
        """A line of a listing; ValueError if it is none."""
        if (match := _LINE.fullmatch(text)) is None:
            raise ValueError(f"not a line of a listing: {text}")
        return cls(**{name: given or "" for name, given in match.groupdict().items()})

    def __str__(self) -> str:
        history = (("since", self.since), ("changed", self.changed), ("removed", self.removed))
        return f"{self.name} | {self.what} | {', '.join(f'{verb} {each}' for verb, each in history if each)}"

    @property
    def group(self) -> str:
        """The group of CHANGELOG.md that has to name it; empty: it is released."""
        groups = ((self.removed, "Removed"), (self.since, "Added"), (self.changed, "Changed"))
        return next((group for version, group in groups if version == UNRELEASED), "")


def read_listing(text: str) -> list[Line]:
    """The lines of a listing."""
    return [Line.read(line) for line in text.splitlines() if line and not line.startswith("#")]


def listing(title: str, lines: Iterable[Line]) -> str:
    """The text of a listing."""
    head = [f"# {title}", "# Written by `make interface`; CONTRIBUTING.md says when."]
    return "\n".join([*head, "", *map(str, lines)]) + "\n"


def brought_up_to_date(old: Iterable[Line], facts: Iterable[Fact]) -> list[Line]:
    """The lines for what the source says now, sorted by name."""
    known = {line.name: line for line in old}
    found = dict(facts)
    lines = [_line(known.get(name), name, what) for name, what in found.items()]
    lines += [gone for name, line in known.items() if name not in found and (gone := _removed(line))]
    return sorted(lines)


def _line(old: Line | None, name: str, what: str) -> Line:
    if old is None or old.removed:
        return Line(name, what, UNRELEASED)
    if old.what == what:
        return old
    return old._replace(what=what, changed="" if old.since == UNRELEASED else UNRELEASED)


def _removed(line: Line) -> Line | None:
    """The line of what is gone; None if it was never released."""
    if line.since == UNRELEASED:
        return None
    return line if line.removed else line._replace(removed=UNRELEASED)


def released(lines: Iterable[Line], version: str) -> list[Line]:
    """The lines when a version is released that has all of them."""
    return [Line(*(version if each == UNRELEASED else each for each in line)) for line in lines]
