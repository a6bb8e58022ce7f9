"""What came of a part of a campaign."""

from __future__ import annotations

from collections import Counter

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """Something did not hold."""

    seed: int
    text: str


class Result(msgspec.Struct):
    """The cases of one check."""

    check: str
    cases: int = 0
    outcomes: dict[str, int] = {}
    """What came of cases, and how often, where nothing is wrong with it."""
    problems: list[Problem] = []

    def add(self, outcome: str, seed: int, problem: str = "") -> None:
        """Count a case; problem: what did not hold, if something did not."""
        self.cases += 1
        if problem:
            self.problems.append(Problem(seed, problem))
        else:
            self.count(outcome, 1)

    def count(self, what: str, number: int) -> None:
        """Count what cases consisted of."""
        self.outcomes[what] = self.outcomes.get(what, 0) + number

    def merge(self, other: Result) -> None:
        """Count the cases of another part of the same check."""
        self.cases += other.cases
        self.outcomes = dict(Counter(self.outcomes) + Counter(other.outcomes))
        self.problems += other.problems
