"""A fact about the interface, as the listings have it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Fact(NamedTuple):
    """Something that users may depend on."""

    name: str
    """How users and CHANGELOG.md name it; its words are separated by spaces."""
    what: str
    """Its type, default, labels or whatever else may not change unnoticed; one line."""


def merged(facts: Iterable[Fact]) -> list[Fact]:
    """One fact for each name, sorted: what differs is joined."""
    found: dict[str, set[str]] = {}
    for name, what in facts:
        found.setdefault(name, set()).add(what)
    return [Fact(name, " or ".join(sorted(found[name]))) for name in sorted(found)]
