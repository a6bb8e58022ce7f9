"""Differences between our decisions and recorded ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from moorage.engine.decision import Decision


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference from the recorded decision."""

    family: str
    recording: str
    pod: str
    what: str
    recorded: object
    ours: object
    node: str = ""
    plugin: str = ""

    def __str__(self) -> str:
        place = " ".join(filter(None, (self.node, self.plugin)))
        subject = f"{self.what} {place}" if place else self.what
        return f"{self.recording} {self.pod}: {subject}: recorded {self.recorded!r}, ours {self.ours!r}"


Differ = Callable[..., Difference]
"""Creates a difference for the pod that is being compared."""


def compare_scores(
    recorded: Mapping[str, Mapping[str, int]], decision: Decision, differ: Differ
) -> Iterator[Difference]:
    """The scores of feasible nodes that differ."""
    for node, theirs in recorded.items():
        ours = decision.scores_of(node)
        for plugin in sorted(theirs.keys() | ours.keys()):
            if theirs.get(plugin) != ours.get(plugin):
                yield differ("score", theirs.get(plugin), ours.get(plugin), node, plugin)


def within(differ: Differ, place: str, what: str, *facts: object) -> Difference:
    """A difference at a certain place of a step."""
    return differ(f"{place}: {what}", *facts)
