"""The cheapest packing, and a lower bound on its price: a set-covering model over patterns, solved by HiGHS.

Where there are few patterns, all of them are in the model (a MILP): its bound is that of the packing itself.
Otherwise patterns are generated where their reduced cost is negative; the bound is that of the linear
relaxation, computed from its duals so that it holds even if the generation ends early.

The solver runs in one thread, with a fixed seed and limits that count nodes and not seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from moorage.api.decode import InputError
from moorage.planning.patterns import Pattern, all_patterns, greedy_patterns
from moorage.planning.pod_classes import Packing

_MAX_PATTERNS: Final = 400
"""Number of patterns up to which all of them are in the model."""
_MAX_ROUNDS: Final = 200
"""Number of rounds in which patterns are generated."""
_MAX_SOLVER_NODES: Final = 400
"""Number of nodes of the solver's tree after which it ends with what it has."""
_TOLERANCE: Final = 1e-6
_MAX_SUMS: Final = 200_000
"""Number of sums of prices up to which the bound is rounded to one of them."""


class PackingResult(NamedTuple):
    """The cheapest packing that was found, and the bound."""

    nodes: tuple[int, ...]
    """How many nodes of each bin."""
    price: float
    bound: float
    """No placement of all pods costs less."""
    left_over: int
    """The pods for which the limits of the catalogue leave no room."""
    is_optimal: bool
    """False if the solver ended at its limit."""


def require_solver() -> None:
    """InputError if the solver is not installed."""
    try:
        import highspy  # noqa: F401
    except ImportError:
        raise InputError("", "the solver HiGHS is missing: pip install 'moorage[plan]'") from None


def cheapest_packing(packing: Packing) -> PackingResult:
    """The cheapest packing of all pods; every class must fit into some bin."""
    patterns = all_patterns(packing, _MAX_PATTERNS)
    if patterns is None:
        patterns, bound = _generated(packing)
    else:
        bound = 0.0
    model = _Model(packing, patterns)
    solved = model.solve(is_whole=True)
    if bound == 0.0:
        bound = solved.bound
    left_over = sum(round(each) for each in solved.values[len(patterns) :])
    nodes = [0] * len(packing.bins)
    for pattern, value in zip(patterns, solved.values, strict=False):
        nodes[pattern.bin] += round(value)
    prices = [bin.price for bin in packing.bins]
    price = float(sum(count * each for count, each in zip(nodes, prices, strict=True)))
    bound = 0.0 if left_over else _attainable(bound, [each for each in prices if each])
    return PackingResult(tuple(nodes), price, min(bound, price), left_over, solved.is_optimal)


class _Solution(NamedTuple):
    values: Sequence[float]
    duals: Sequence[float]
    bound: float
    is_optimal: bool


class _Model:
    """Columns are patterns, then pods that are left over; rows are classes, then limits."""

    def __init__(self, packing: Packing, patterns: Sequence[Pattern]) -> None:
        self._packing = packing
        self.limits = _limits(packing)
        self._highs = _new_solver()
        infinity = self._highs.getInfinity()
        for each in packing.classes:
            self._highs.addRow(float(each.count), infinity, 0, [], [])
        for limit, _ in self.limits:
            self._highs.addRow(-infinity, float(limit), 0, [], [])
        self._patterns = 0
        for pattern in patterns:
            self.add(pattern)
        penalty = 1.0 + sum(bin.price for bin in packing.bins) * sum(each.count for each in packing.classes)
        for row in range(len(packing.classes)):
            self._highs.addCol(penalty, 0.0, infinity, 1, [row], [1.0])

    def add(self, pattern: Pattern) -> None:
        """Add a pattern; after the left-over pods if those are there already."""
        rows = [row for row, count in enumerate(pattern.counts) if count]
        values = [float(pattern.counts[row]) for row in rows]
        for number, (_, bins) in enumerate(self.limits):
            if pattern.bin in bins:
                rows.append(len(self._packing.classes) + number)
                values.append(1.0)
        price = self._packing.bins[pattern.bin].price
        self._highs.addCol(price, 0.0, self._highs.getInfinity(), len(rows), rows, values)
        self._patterns += 1

    def solve(self, *, is_whole: bool) -> _Solution:
        """Solve the model, or its relaxation."""
        import highspy

        highs = self._highs
        if is_whole:
            count = highs.getNumCol()
            kinds = [highspy.HighsVarType.kInteger] * count
            highs.changeColsIntegrality(count, np.arange(count, dtype=np.int32), np.array(kinds))
        highs.run()
        solution, info = highs.getSolution(), highs.getInfo()
        bound = float(info.mip_dual_bound if is_whole else info.objective_function_value)
        is_optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        return _Solution(list(solution.col_value), list(solution.row_dual), bound, is_optimal)


def _new_solver() -> Any:
    import highspy

    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", 0),
        ("mip_rel_gap", 0.0),
        ("mip_max_nodes", _MAX_SOLVER_NODES),
    ):
        highs.setOptionValue(option, value)
    return highs


def _limits(packing: Packing) -> list[tuple[int, frozenset[int]]]:
    """The limits of nodes that are there, and of shapes; each with the bins that it is about."""
    limits: list[tuple[int, frozenset[int]]] = []
    of_shape: dict[str, list[int]] = {}
    for number, bin in enumerate(packing.bins):
        if bin.limit is None:
            continue
        if bin.offers:
            of_shape.setdefault(bin.offers[0].shape.name, []).append(number)
        else:
            limits.append((bin.limit, frozenset((number,))))
    for some in of_shape.values():
        limit = packing.bins[some[0]].limit
        assert limit is not None
        limits.append((limit, frozenset(some)))
    return limits


def _generated(packing: Packing) -> tuple[list[Pattern], float]:
    """Patterns that suffice for the relaxation, and its bound."""
    patterns = greedy_patterns(packing)
    known, model, best = set(patterns), _Model(packing, patterns), 0.0
    for _ in range(_MAX_ROUNDS):
        duals = model.solve(is_whole=False).duals
        worth = [max(0.0, each) for each in duals[: len(packing.classes)]]
        charges = [max(0.0, -each) for each in duals[len(packing.classes) :]]
        priced = [_most_worthy(packing, number, worth) for number in range(len(packing.bins))]
        best = max(best, _bound(packing, model.limits, worth, charges, [most for most, _ in priced]))
        added = 0
        for number, (most, pattern) in enumerate(priced):
            charge = sum(
                each for each, (_, bins) in zip(charges, model.limits, strict=True) if number in bins
            )
            if most > packing.bins[number].price + charge + _TOLERANCE and pattern not in known:
                known.add(pattern)
                patterns.append(pattern)
                model.add(pattern)
                added += 1
        if not added:
            break
    return patterns, best


def _most_worthy(packing: Packing, number: int, worth: Sequence[float]) -> tuple[float, Pattern]:
    """The pattern of a bin whose pods are worth most together, and an upper bound on that: a knapsack."""
    import highspy

    bin, highs = packing.bins[number], _new_solver()
    highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
    infinity = highs.getInfinity()
    for room in bin.room:
        highs.addRow(-infinity, 1.0 if room > 0 else 0.0, 0, [], [])
    for cls, each in enumerate(packing.classes):
        rows = [row for row, amount in enumerate(each.demand) if amount > 0 and bin.room[row] > 0]
        shares = [float(each.demand[row] / bin.room[row]) for row in rows]
        highs.addCol(worth[cls], 0.0, float(packing.capacity(bin, cls)), len(rows), rows, shares)
    count = len(packing.classes)
    kinds = np.array([highspy.HighsVarType.kInteger] * count)
    highs.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kinds)
    highs.run()
    counts = tuple(round(value) for value in highs.getSolution().col_value)
    return max(0.0, float(highs.getInfo().mip_dual_bound)), Pattern(number, counts)


def _bound(
    packing: Packing,
    limits: Sequence[tuple[int, frozenset[int]]],
    worth: Sequence[float],
    charges: Sequence[float],
    most: Sequence[float],
) -> float:
    """A valid bound from any duals: they are scaled until no pattern is worth more than it costs.

    most: the most that the pods of one bin are worth together. Nodes that are there cost nothing; what their
    pods are worth is subtracted for each of them.
    """
    scale, subtracted = 1.0, 0.0
    for number, bin in enumerate(packing.bins):
        if not bin.offers:
            assert bin.limit is not None
            subtracted += bin.limit * most[number]
            continue
        charge = sum(each for each, (_, bins) in zip(charges, limits, strict=True) if number in bins)
        if most[number] - charge > bin.price:
            scale = min(scale, bin.price / (most[number] - charge))
    for charge, (limit, bins) in zip(charges, limits, strict=True):
        if packing.bins[min(bins)].offers:
            subtracted += limit * charge
    total = sum(value * each.count for value, each in zip(worth, packing.classes, strict=True))
    return max(0.0, scale * (total - subtracted))


def _attainable(bound: float, prices: Sequence[float]) -> float:
    """The least sum of prices that is not below a bound: a set of nodes costs such a sum."""
    if bound <= 0 or not prices:
        return 0.0
    units = sorted({round(price * 1e6) for price in prices})
    if any(
        abs(unit - price * 1e6) > _TOLERANCE for unit, price in zip(units, sorted(set(prices)), strict=False)
    ):
        return bound
    step = math.gcd(*units)
    least = math.ceil(bound * 1e6 * (1 - _TOLERANCE) / step)
    steps = [unit // step for unit in units]
    if least + steps[0] > _MAX_SUMS:
        return least * step / 1e6
    reached = np.zeros(least + steps[0] + 1, bool)
    reached[0] = True
    for each in steps:
        for start in range(min(each, len(reached))):
            reached[start::each] = np.logical_or.accumulate(reached[start::each])
    return float(int(np.flatnonzero(reached[least:])[0]) + least) * step / 1e6
