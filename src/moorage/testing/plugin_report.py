"""Findings of the checks: one outcome per check, and a readable report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

MAX_FINDINGS_KEPT: Final = 3


class Result(Enum):
    """The result of a check; a check does not apply to a plugin without its extension point."""

    PASSED = "ok"
    FAILED = "FAILED"
    NOT_APPLICABLE = "-"


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation of a rule, with the pod and the cluster in which it occurred."""

    what: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.what} ({self.where})" if self.where else self.what


@dataclass(slots=True)
class Outcome:
    """The outcome of one check. Only the first findings are kept; `count` is their total number."""

    check: str
    sentence: str
    applies: bool = True
    findings: list[Finding] = field(default_factory=list)
    count: int = 0

    def add(self, finding: Finding) -> None:
        """Add a finding; equal texts for other pods are only counted."""
        self.count += 1
        is_known = any(known.what == finding.what for known in self.findings)
        if len(self.findings) < MAX_FINDINGS_KEPT and not is_known:
            self.findings.append(finding)

    @property
    def result(self) -> Result:
        """The check's result."""
        if self.count:
            return Result.FAILED
        return Result.PASSED if self.applies else Result.NOT_APPLICABLE

    def lines(self) -> Iterator[str]:
        """The findings as text, one per line."""
        yield from map(str, self.findings)
        if (more := self.count - len(self.findings)) > 0:
            yield f"... and {more} more"


@dataclass(slots=True)
class PluginReport:
    """The outcomes of all checks of one plugin.

    cases: the number of pairs of a pod and a cluster that it was called for.
    notes: reasons why passed checks may mean little, such as a filter that never rejected a node.
    """

    plugin: str
    outcomes: list[Outcome] = field(default_factory=list)
    cases: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.failed

    @property
    def failed(self) -> list[Outcome]:
        """The checks that failed."""
        return [outcome for outcome in self.outcomes if outcome.result is Result.FAILED]

    def of(self, check: str) -> Outcome:
        """The outcome of one check, by its name."""
        return next(outcome for outcome in self.outcomes if outcome.check == check)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        ran = [outcome for outcome in self.outcomes if outcome.result is not Result.NOT_APPLICABLE]
        passed = len(ran) - len(self.failed)
        yield f"plugin {self.plugin}: {passed} of {len(ran)} checks passed, {self.cases} cases"
        for outcome in self.failed:
            yield f"  {outcome.check}: {outcome.sentence}"
            yield from _indented(outcome.lines())
        yield from _indented((f"note: {note}" for note in self.notes), "  ")


def _indented(lines: Iterable[str], by: str = "    ") -> Iterator[str]:
    return (f"{by}{line}" for line in lines)
