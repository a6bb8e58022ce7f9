"""What clients of a server asked and were told, and when; times are of one clock."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

Verb = Literal["create", "update", "patch", "delete", "get"]


class Call(msgspec.Struct):
    """One request about one object, and its answer.

    Contents are unique, one for each write. Versions are numbers; 0: not known.
    """

    verb: Verb
    key: str
    begun_at: float
    content: str = ""
    """What is written, or was read; empty: nothing was there."""
    expected: int = 0
    """The version that an update or a deletion replaces."""
    ended_at: float = math.inf
    """Infinite: there was no answer, and it may have happened or not."""
    code: int = 0
    """HTTP status of the answer; 0: there was none."""
    version: int = 0
    """The version that the write got, or that was read."""

    @property
    def is_acknowledged_write(self) -> bool:
        """Whether it wrote an object, and its version is known."""
        return self.version > 0 and self.verb in ("create", "update", "patch")


class Event(msgspec.Struct, frozen=True):
    """One event of a watch."""

    type: str
    key: str
    version: int
    content: str


class Session(msgspec.Struct):
    """A list, and the events of the watches that follow it without another list."""

    begun_at: float
    listed_at: float
    revision: int
    listed: dict[str, tuple[int, str]]
    """Version and content by key."""
    events: list[Event] = []
    watches: int = 0
    """Number of watches, each from the last event of the one before."""

    @property
    def end(self) -> int:
        """The revision until which everything was seen."""
        return self.events[-1].version if self.events else self.revision


class History(msgspec.Struct):
    """All calls and sessions of a run."""

    calls: list[Call] = []
    sessions: list[Session] = []
