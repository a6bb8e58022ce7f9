"""The search: offers of all kinds are combined, verified by evaluation, and ranked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
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
_MAX_SUGGESTIONS: Final = 6
_MAX_OF_EQUAL_KINDS: Final = 2
"""Number of suggestions with changes of the same kinds."""
_MAX_GROUPS: Final = 64
"""Number of groups of equal nodes for which offers are combined, those with the fewest rejections first."""
_MAX_COVERS: Final = 64
"""Number of combinations for each of them."""
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
    offers = _all_offers(problem)
    found: list[Suggestion] = []
    seen: Counter[frozenset[str]] = Counter()
    opening: list[frozenset[int]] = []
    trials = 0
    for chosen in _combined(problem, offers):
        changes = _changes(offers[index] for index in sorted(chosen))
        if seen[_kinds(changes)] >= _MAX_OF_EQUAL_KINDS or any(each < chosen for each in opening):
            continue
        suggestion = _verified(problem.trials, changes)
        trials += 1
        if suggestion is not None:
            opening.append(chosen)
            kinds = _kinds(suggestion.changes)
            if suggestion not in found and seen[kinds] < _MAX_OF_EQUAL_KINDS:
                found.append(suggestion)
                seen[kinds] += 1
        if trials >= _MAX_TRIALS or len(found) >= _MAX_SUGGESTIONS:
            break
    return sorted(found, key=lambda each: len(each.changes))


def _all_offers(problem: Problem) -> list[Offer]:
    """The offers of all kinds, those that are preferred first; equal changes are one offer."""
    offers: list[Offer] = []
    for rank, kind in enumerate(KINDS):
        for offer in kind(problem):
            same = next((index for index, each in enumerate(offers) if each.changes == offer.changes), None)
            if same is None:
                offers.append(replace(offer, rank=rank))
            else:
                offers[same] = replace(offers[same], cleared=offers[same].cleared | offer.cleared)
    return offers


def _kinds(changes: Iterable[Change]) -> frozenset[str]:
    return frozenset(each.kind for each in changes)


def _combined(problem: Problem, offers: Sequence[Offer]) -> list[frozenset[int]]:
    """Sets of offers that open a node as far as each filter alone is concerned, smallest first."""
    columns = np.array([problem.refused_bits, *(offer.cleared for offer in offers)])
    distinct = np.unique(columns, axis=1)
    nearest = np.argsort([bits.bit_count() for bits in distinct[0].tolist()], kind="stable")
    found: set[frozenset[int]] = set()
    for refused, *cleared in distinct[:, nearest[:_MAX_GROUPS]].T.tolist():
        found.update(islice(_covers(refused, cleared), _MAX_COVERS))
    return sorted(found, key=lambda chosen: _rank([offers[index] for index in sorted(chosen)]))


def _covers(refused: int, cleared: Sequence[int]) -> Iterator[frozenset[int]]:
    """The sets of offers that clear all bits of a node: one offer for each bit that those before left."""
    if not refused:
        yield frozenset()
        return
    lowest = refused & -refused
    for index, bits in enumerate(cleared):
        if bits & lowest:
            yield from (rest | {index} for rest in _covers(refused & ~bits, cleared))


def _changes(offers: Iterable[Offer]) -> tuple[Change, ...]:
    """The changes of some offers, each once."""
    changes: list[Change] = []
    for offer in offers:
        changes += [change for change in offer.changes if change not in changes]
    return tuple(changes)


def _rank(offers: Sequence[Offer]) -> tuple[int, int, float]:
    changes = sum(len(offer.changes) for offer in offers)
    return changes, sum(offer.rank for offer in offers), sum(offer.cost for offer in offers)


def _verified(trials: Trials, changes: tuple[Change, ...]) -> Suggestion | None:
    """A suggestion, if changes open nodes: without those that are not needed, and as small as possible."""
    if not trials.opened(changes):
        return None
    index = 0
    while index < len(changes):
        before, change, after = changes[:index], changes[index], changes[index + 1 :]
        if (before or after) and trials.opened((*before, *after)):
            # Fewer changes may open more nodes, so that smaller ones are enough: begin again.
            changes, index = (*before, *after), 0
            continue
        if isinstance(change, SizedChange):
            changes = (*before, _smallest(trials, before, change, after), *after)
        index += 1
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
