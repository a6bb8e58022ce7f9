"""Relax a topology spread constraint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec.structs import replace as replaced

from moorage.api.pod import TopologySpreadConstraint
from moorage.explain.evaluation import Rows
from moorage.explain.help.change import Situation
from moorage.explain.help.problem import Offer, Problem

_PLUGIN: Final = "PodTopologySpread"
_HARD: Final = ("", "DoNotSchedule")
_MAX_SKEW: Final = 1 << 20
"""A skew that no cluster has."""
_MAX_GROUPS: Final = 3


@dataclass(frozen=True, slots=True)
class RelaxSpread:
    """Allow a larger skew."""

    index: int
    constraint: TopologySpreadConstraint
    max_skew: int

    kind: str = "spread"

    def __str__(self) -> str:
        return f"relax the spread constraint over {self.constraint.topology_key} to maxSkew {self.max_skew}"

    def apply(self, situation: Situation) -> Situation:
        """With the larger skew."""
        constraints = list(situation.pod.spec.topology_spread_constraints)
        constraints[self.index] = replaced(constraints[self.index], max_skew=self.max_skew)
        return situation.with_spec(
            lambda spec: replaced(spec, topology_spread_constraints=tuple(constraints))
        )

    @property
    def size(self) -> int:
        """By how much the skew is larger."""
        return self.max_skew - self.constraint.max_skew

    def resized(self, size: int) -> RelaxSpread:
        """With another skew."""
        return replace(self, max_skew=self.constraint.max_skew + size)

    def details(self) -> dict[str, Any]:
        """The constraint, and its skew now and then."""
        return {
            "constraint": self.index,
            "topologyKey": self.constraint.topology_key,
            "maxSkewNow": self.constraint.max_skew,
            "maxSkew": self.max_skew,
        }


def offers(problem: Problem) -> Iterator[Offer]:
    """Each constraint relaxed alone as far as needed; if that is not enough anywhere, all of them."""
    if not problem.refused_by(_PLUGIN).any():
        return
    unlimited = [
        RelaxSpread(index, each, _MAX_SKEW)
        for index, each in enumerate(problem.pod.spec.topology_spread_constraints)
        if each.when_unsatisfiable in _HARD
    ]
    groups = [rows for _, rows in zip(range(_MAX_GROUPS), problem.groups(_PLUGIN), strict=False)]
    for rows in groups:
        found = [offer for each in unlimited for offer in _tightened(problem, [each], rows)]
        yield from found or _tightened(problem, unlimited, rows)


def _tightened(problem: Problem, changes: Sequence[RelaxSpread], rows: Rows) -> Iterator[Offer]:
    """Changes with the smallest skews that let any of some nodes pass, one after another."""
    chosen = list(changes)

    def passes(index: int, max_skew: int) -> bool:
        tried = [*chosen[:index], replace(chosen[index], max_skew=max_skew), *chosen[index + 1 :]]
        return bool(problem.passes(problem.pod_after(tried), _PLUGIN)[rows].any())

    if not chosen or not passes(0, _MAX_SKEW):
        return
    for index, each in enumerate(chosen):
        least = _least(each.constraint.max_skew, lambda skew, index=index: passes(index, skew))  # type: ignore[misc]
        chosen[index] = replace(each, max_skew=least)
    needed = tuple(each for each in chosen if each.max_skew > each.constraint.max_skew)
    yield problem.offer(needed, sum(each.max_skew - each.constraint.max_skew for each in needed), _PLUGIN)


def _least(low: int, passes: Callable[[int], bool]) -> int:
    """The smallest number from `low` on that passes; larger ones pass as well."""
    if passes(low):
        return low
    step = 1
    while not passes(low + step):
        low, step = low + step, step * 2
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high
