"""The scores of many nodes: the rules of `scoring`, for all nodes at once."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage import MAX_SCORE, Nodes, Scores
from moorage.optional_plugins.numa.columns import Column, Mask, Zones, free_zones
from moorage.optional_plugins.numa.combinations import masks_of
from moorage.optional_plugins.numa.requests import Amounts, PodRequests
from moorage.optional_plugins.numa.scoring import BALANCED, LEAST, MOST, Weights
from moorage.optional_plugins.numa.topology import POLICIES, SINGLE
from moorage.optional_plugins.numa.zone_rows import ZoneRows

_SINGLE: Final = POLICIES.index(SINGLE)


def allocation_scores(
    known: ZoneRows, nodes: Nodes, requests: PodRequests, strategy: str, weights: Weights
) -> Scores:
    """As `scoring.allocation_score`, for each node."""
    scores = np.zeros(len(nodes), np.int64)
    single, is_by_pod = nodes.pick(known.policy) == _SINGLE, nodes.pick(known.is_by_pod)
    if not single.any():
        return scores
    free = free_zones(known, nodes, requests.names)
    for by_pod in (True, False):
        places = np.flatnonzero(single & (is_by_pod == by_pod))
        if not len(places):
            continue
        parts = [requests.all] if by_pod else [each.all for each in requests.containers]
        here = {name: np.maximum(each[:, places], 0) for name, each in free.items()}
        exists = np.arange(known.width)[:, None] < nodes.pick(known.zone_count)[places]
        total = np.zeros(len(places), np.int64)
        for part in parts:
            total += _lowest(here, part, exists, _STRATEGIES[strategy], weights)
        scores[places] = total // len(parts)
    return scores


def _lowest(
    free: dict[str, Column],
    needs: Amounts,
    exists: Mask,
    score: Callable[[list[tuple[int, Column, int]]], Column],
    weights: Weights,
) -> Column:
    """The lowest score of a zone that is not zero, for each node."""
    if not needs:
        return np.zeros(exists.shape[1], np.int64)
    nothing = np.zeros(exists.shape, np.int64)
    scores = score([(need, free.get(name, nothing), weights.get(name, 1)) for name, need in needs.items()])
    counts = exists & (scores > 0)
    lowest = np.where(counts, scores, MAX_SCORE + 1).min(axis=0)
    return np.where(counts.any(axis=0), lowest, 0)


def _most_allocated(amounts: list[tuple[int, Column, int]]) -> Column:
    total = sum(
        np.where(left >= need, need * MAX_SCORE // np.maximum(left, 1), 0) * weight
        for need, left, weight in amounts
    )
    return np.asarray(total // sum(weight for _, _, weight in amounts))


def _least_allocated(amounts: list[tuple[int, Column, int]]) -> Column:
    total = sum(
        np.where(left >= need, (left - need) * MAX_SCORE // np.maximum(left, 1), 0) * weight
        for need, left, weight in amounts
    )
    return np.asarray(total // sum(weight for _, _, weight in amounts))


def _balanced(amounts: list[tuple[int, Column, int]]) -> Column:
    fractions = [np.where(left > 0, need / np.maximum(left, 1), 1.0) for need, left, _ in amounts]
    fits = np.logical_and.reduce([each <= 1 for each in fractions])
    if len(fractions) < 2:
        return np.where(fits, MAX_SCORE, 0)
    mean = sum(fractions[1:], fractions[0]) / len(fractions)
    squares = [(each - mean) * (each - mean) for each in fractions]
    variance = sum(squares[1:], squares[0]) / (len(fractions) - 1)
    return np.where(fits, ((1 - variance) * MAX_SCORE).astype(np.int64), 0)


_STRATEGIES: Final = MappingProxyType({MOST: _most_allocated, LEAST: _least_allocated, BALANCED: _balanced})


def least_zones_scores(known: ZoneRows, nodes: Nodes, requests: PodRequests) -> Scores:
    """As `scoring.least_zones_score`, for each node."""
    scores = np.zeros(len(nodes), np.int64)
    counts, is_by_pod = nodes.pick(known.zone_count), nodes.pick(known.is_by_pod)
    free = free_zones(known, nodes, requests.pinned) if counts.any() else {}
    for count, by_pod in sorted({*zip(counts.tolist(), is_by_pod.tolist(), strict=True)}):
        if count:
            places = np.flatnonzero((counts == count) & (is_by_pod == by_pod))
            rows = nodes.row_numbers()[places]
            zones = Zones(known, rows, {name: each[:, places] for name, each in free.items()})
            scores[places] = _scores_of(known, rows, zones, count, requests, by_pod)
    return scores


def _scores_of(
    known: ZoneRows,
    rows: NDArray[np.intp],
    zones: Zones,
    count: int,
    requests: PodRequests,
    by_pod: bool,
) -> Column:
    """The scores of nodes with the same number of zones and scope."""
    costs = known.costs(rows.tolist())[:count, :count]
    most, are_closest = np.zeros(len(rows), np.int64), np.ones(len(rows), bool)
    fits = np.ones(len(rows), bool)
    parts = (
        [(requests.pinned, False)] if by_pod else [(each.pinned, each.stays) for each in requests.containers]
    )
    for needs, stays in parts:
        size, is_closest, chosen = _fewest(zones, costs, count, needs)
        fits &= size >= 0
        most = np.maximum(most, size)
        are_closest &= is_closest
        if stays:
            zones.take(needs, chosen)
    step = MAX_SCORE // known.max_zones[rows]
    scores = np.maximum(MAX_SCORE - most * step + np.where(are_closest, step // 2, 0), 0)
    return np.where(fits, np.where(most > 0, scores, MAX_SCORE), 0)


def _fewest(zones: Zones, costs: Column, count: int, needs: Amounts) -> tuple[Column, Mask, Mask]:
    """How many zones each node needs (0: any, -1: no room), whether no others are closer, and which."""
    wanted = zones.wanted(needs)
    size, is_closest = np.full(len(zones), -1, np.int64), np.ones(len(zones), bool)
    chosen = np.zeros(
        (costs.shape[0] if not zones.free else len(next(iter(zones.free.values()))), len(zones)), bool
    )
    is_constrained = np.zeros(len(zones), bool)
    for _, _, listed in wanted:
        is_constrained |= listed
    size[~is_constrained] = 0
    for number in range(1, count + 1):
        open_places = np.flatnonzero(size < 0)
        masks = masks_of(count, number)
        if not len(open_places) or masks is None:
            break
        has = np.ones((len(masks), len(open_places)), bool)
        for name, amount, listed in wanted:
            left = np.maximum(zones.free[name][:count, open_places], 0)
            has &= (masks @ left >= amount) | ~listed[open_places]
        found = has.any(axis=0)
        places = open_places[found]
        distances = np.einsum("mi,ijn,mj->mn", masks, costs[:, :, places], masks)
        far = np.iinfo(np.int64).max
        own = np.where(has[:, found], distances, far)
        size[places] = number
        is_closest[places] = own.min(axis=0, initial=far) == distances.min(axis=0, initial=far)
        chosen[:count, places] = masks[own.argmin(axis=0)].T != 0 if len(places) else False
    return size, is_closest, chosen
