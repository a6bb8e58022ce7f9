"""Which plugin explains that another scheduler chose another node: by which weight of it would we agree?

A node wins if no other has a greater total. With one plugin's weight multiplied by a factor, the totals are
linear in that factor, so the factors with which a node wins are an interval, possibly empty. A plugin whose
interval is not empty explains the choice of the node. Preferred is one that explains all choices so far by
one and the same factor, then one that explains many, then the smallest change of a weight.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from moorage.framework.interface.extension_points import Scores
from moorage.framework.runtime.scores import ScoreTable


class Factors(NamedTuple):
    """An interval of factors of a plugin's weight."""

    lowest: float
    highest: float

    def __bool__(self) -> bool:
        return self.lowest <= self.highest

    def __and__(self, other: Factors) -> Factors:
        return Factors(max(self.lowest, other.lowest), min(self.highest, other.highest))

    @property
    def nearest(self) -> float:
        """The factor that is the smallest change."""
        return min(max(1.0, self.lowest), self.highest)

    @property
    def change(self) -> float:
        """How far that is from no change; a negative weight is farther than any other."""
        factor = self.nearest
        return math.inf if factor < 0 else abs(math.log(factor)) if factor else _NO_WEIGHT


_NO_WEIGHT: Final = 50.0
"""The change of a plugin that is left out: farther than any factor that weights can have."""
_MAX_DIFFERENCES: Final = 10_000
"""Number of the last differences that are explained again when more is known."""
_ANY: Final = Factors(-math.inf, math.inf)
_NONE: Final = Factors(math.inf, -math.inf)


def winning_factors(scores: ScoreTable, winner: int) -> dict[str, Factors]:
    """For each plugin the factors of its weight with which a node wins; only plugins with any."""
    lead = scores.totals - scores.totals[winner]
    intervals = {plugin: _factors(points, lead, winner) for plugin, points in scores.by_plugin.items()}
    return {plugin: interval for plugin, interval in intervals.items() if interval}


def _factors(points: Scores, lead: Scores, winner: int) -> Factors:
    """lead: how much more each node has in total than the winner."""
    gain = points[winner] - points
    if bool(np.any((gain == 0) & (lead > 0))):
        return _NONE
    rising, falling = gain > 0, gain < 0
    lowest = float(np.max(lead[rising] / gain[rising], initial=-math.inf))
    highest = float(np.min(lead[falling] / gain[falling], initial=math.inf))
    return Factors(1 + lowest, 1 + highest)


class WeightEvidence:
    """The factors of each plugin's weight that agree with all decisions of a profile so far."""

    def __init__(self) -> None:
        self._consistent: dict[str, Factors] = {}
        self._possible: Counter[str] = Counter()
        """Number of differences that each plugin can explain."""
        self._differences: deque[Mapping[str, Factors]] = deque(maxlen=_MAX_DIFFERENCES)

    def add(
        self, factors: Mapping[str, Factors], plugins: Mapping[str, object], *, is_different: bool
    ) -> None:
        """One more decision; `plugins` are all that have scored."""
        if is_different:
            self._differences.append(factors)
            self._possible.update(factors.keys())
        for plugin in plugins:
            known = self._consistent.get(plugin, _ANY)
            self._consistent[plugin] = known & factors.get(plugin, _NONE)

    def consistent(self, plugin: str) -> Factors:
        """The factors of a plugin's weight that explain everything so far."""
        return self._consistent.get(plugin, _ANY)

    def explanations(self) -> Counter[str]:
        """Number of differences by the plugin that explains them, with all that is known now."""
        return Counter(self.explain(factors) for factors in self._differences)

    def explain(self, factors: Mapping[str, Factors]) -> str:
        """The plugin that explains a decision best; empty if none does alone."""

        def rank(plugin: str) -> tuple[bool, int, float, str]:
            consistent = self.consistent(plugin)
            change = (consistent or factors[plugin]).change
            return not consistent, -self._possible[plugin], change, plugin

        return min(factors, key=rank, default="")
