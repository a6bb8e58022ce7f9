"""What runs have seen, and what was wrong."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from tests.apiserver.fuzzing.request import Shot


@dataclass(slots=True)
class Failure:
    """Something wrong, and how to see it again."""

    number: int
    why: str
    shots: list[Shot]
    """Enough to repeat it, the last being the one that failed."""

    @property
    def signature(self) -> str:
        """What is the same for failures of the same cause."""
        places = re.findall(r'File "[^"]*?([\w/]+\.py)", line (\d+)', self.why)
        if places:
            return f"{places[-1]}"
        return re.sub(r"\d+|'.*'|\".*\"", "#", self.why.strip().splitlines()[0])[:160]


@dataclass(slots=True)
class Report:
    """What a run has seen."""

    requests: int = 0
    seconds: float = 0.0
    slowest_seconds: float = 0.0
    slowest: int = 0
    """The number of the request that took longest."""
    codes: Counter[int] = field(default_factory=Counter)
    bodies: Counter[str] = field(default_factory=Counter)
    """How many requests had which kind of body, or came in which way."""
    failures: list[Failure] = field(default_factory=list)

    def note(self, number: int, shot: Shot, code: int, seconds: float) -> None:
        """Count an answer."""
        self.requests += 1
        self.count(shot.body_kind, [code])
        if seconds > self.slowest_seconds:
            self.slowest, self.slowest_seconds = number, seconds

    def count(self, body: str, codes: list[int]) -> None:
        """Count the answers to a kind of body."""
        self.bodies[body] += 1
        self.codes.update(codes)

    def add(self, other: Report) -> None:
        """Count what another run has seen; failures of a cause that is known already are left out."""
        self.requests += other.requests
        self.codes += other.codes
        self.bodies += other.bodies
        if other.slowest_seconds > self.slowest_seconds:
            self.slowest, self.slowest_seconds = other.slowest, other.slowest_seconds
        known = {each.signature for each in self.failures}
        self.failures += [each for each in other.failures if each.signature not in known]

    def __str__(self) -> str:
        bodies = ", ".join(f"{body}: {count}" for body, count in self.bodies.most_common())
        codes = ", ".join(f"{code}: {count}" for code, count in sorted(self.codes.items()))
        return (
            f"{self.requests} requests in {self.seconds:.0f} s, "
            f"the slowest ({self.slowest}) {self.slowest_seconds * 1000:.0f} ms; "
            f"{len(self.failures)} failures\nby body: {bodies}\nby status: {codes}"
        )
