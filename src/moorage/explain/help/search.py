"""The search: offers of all kinds are combined, verified by evaluation, and ranked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np

from moorage.explain.help import (
    devices,
    evictions,
    new_node,
    node_labels,
    pod_terms,
    requests,
    spread,
    tolerations,
    volume_claims,
)
from moorage.explain.help.change import Change, SizedChange
from moorage.explain.help.evictions import Evict
from moorage.explain.help.problem import Offer, Problem
from moorage.explain.help.trials import Trials

KINDS: Final[tuple[Callable[[Problem], Iterable[Offer]], ...]] = (
    tolerations.offers,
    requests.offers,
    spread.offers,
    pod_terms.offers,
    node_labels.offers,
    volume_claims.offers,
    devices.offers,
    evictions.offers,
    new_node.offers,
)
"""The kinds of changes that are searched, those that are preferred first."""
_MAX_SUGGESTIONS: Final = 8
_MAX_OF_EQUAL_KINDS: Final = 2
"""Number of suggestions with changes of the same kinds."""
_MAX_COMBINED: Final = 4
"""Number of offers that are combined."""
_MAX_TRIALS: Final = 40
"""Number of combinations that are evaluated."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Changes that together make the pod schedulable, and the nodes that they open."""

    changes: tuple[Change, ...]
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        evicted = [each.pod.key for each in self.changes if isinstance(each, Evict)]
        texts = [str(each) for each in self.changes if not isinstance(each, Evict)]
        return " and ".join([*texts, f"evict {', '.join(evicted)}"] if evicted else texts)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "text": str(self),
            "changes": [{"kind": each.kind, **each.details()} for each in self.changes],
            "nodes": list(self.nodes),
        }


def suggestions(problem: Problem) -> list[Suggestion]:
    """Changes that make a pod schedulable, the smallest first. Each was evaluated, and is minimal:

    without any of its changes, and with the next smaller one in its place, no node is opened.
    """
    offers = [(rank, offer) for rank, kind in enumerate(KINDS) for offer in kind(problem)]
    found: list[Suggestion] = []
    seen: dict[tuple[str, ...], int] = {}
    for _, changes in zip(range(_MAX_TRIALS), _combined(problem, offers), strict=False):
        kinds = tuple(sorted({each.kind for each in changes}))
        if len(found) >= _MAX_SUGGESTIONS or seen.get(kinds, 0) >= _MAX_OF_EQUAL_KINDS:
            continue
        suggestion = _verified(problem.trials, changes)
        if suggestion is not None:
            found.append(suggestion)
            seen[kinds] = seen.get(kinds, 0) + 1
    return found


def _combined(problem: Problem, offers: Sequence[tuple[int, Offer]]) -> Iterator[tuple[Change, ...]]:
    """Combinations of offers that open a node as far as each filter alone is concerned, smallest first."""
    columns = np.array([problem.refused_bits, *(offer.cleared for _, offer in offers)])
    refused, *cleared = np.unique(columns, axis=1)
    opening: list[tuple[int, ...]] = []
    for size in range(1, min(_MAX_COMBINED, len(offers)) + 1):
        found = [
            combination
            for combination in combinations(range(len(offers)), size)
            if not any(set(smaller) <= set(combination) for smaller in opening)
            and not (refused & ~np.bitwise_or.reduce([cleared[index] for index in combination])).all()
        ]
        opening += found
        yield from (
            _changes(offers[index][1] for index in combination)
            for combination in sorted(found, key=lambda chosen: _rank([offers[index] for index in chosen]))
        )
        if len(opening) >= _MAX_TRIALS:
            return


def _changes(offers: Iterable[Offer]) -> tuple[Change, ...]:
    """The changes of some offers, each once."""
    changes: list[Change] = []
    for offer in offers:
        changes += [change for change in offer.changes if change not in changes]
    return tuple(changes)


def _rank(offers: Sequence[tuple[int, Offer]]) -> tuple[int, int, float]:
    changes = sum(len(offer.changes) for _, offer in offers)
    return changes, sum(rank for rank, _ in offers), sum(offer.cost for _, offer in offers)


def _verified(trials: Trials, changes: tuple[Change, ...]) -> Suggestion | None:
    """A suggestion, if its changes open nodes and all are needed; they are made as small as possible."""
    if not trials.opened(changes):
        return None
    for index, change in enumerate(changes):
        before, after = changes[:index], changes[index + 1 :]
        if len(changes) > 1 and trials.opened((*before, *after)):
            return None
        if isinstance(change, SizedChange):
            changes = (*before, _smallest(trials, before, change, after), *after)
    return Suggestion(changes, tuple(sorted(trials.opened(changes))))


def _smallest(
    trials: Trials, before: tuple[Change, ...], change: SizedChange, after: tuple[Change, ...]
) -> SizedChange:
    """A change made smaller, as long as it opens nodes together with others: these may have made room."""

    def opens(size: int) -> bool:
        return bool(trials.opened((*before, change.resized(size), *after)))

    if change.size < 2 or not opens(change.size - 1):
        return change
    none, enough = 0, change.size - 1
    while enough - none > 1:
        middle = (none + enough) // 2
        none, enough = (none, middle) if opens(middle) else (middle, enough)
    return change.resized(enough)
