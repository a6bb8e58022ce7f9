"""Node pressure: eviction thresholds against observations, over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from moorage.api.resource_requests import MEMORY
from moorage_cluster.nodes.thresholds import Threshold


class Observation(NamedTuple):
    """The available amount of a resource, and its capacity."""

    available: int
    capacity: int

    @classmethod
    def of(cls, capacity: int, used: int) -> Observation:
        """The observation for a used amount; available is at least 0."""
        return cls(max(capacity - used, 0), capacity)


Observations = Mapping[str, Observation]
"""By signal."""


class Pressure:
    """The pressure state of one node: since when thresholds are met, when conditions were last observed."""

    def __init__(self, thresholds: Iterable[Threshold], transition_seconds: float) -> None:
        self._thresholds = tuple(thresholds)
        self._transition_seconds = transition_seconds
        self._met_since: dict[Threshold, float] = {}
        self._last_seen: dict[str, float] = {}
        self.conditions: tuple[str, ...] = ()
        """The pressure conditions of the node, also for a transition period after they were last observed."""

    def observe(self, now: float, observations: Observations) -> list[Threshold]:
        """Record observations; returns the thresholds to act on, memory first.

        A threshold stays met until enough has been reclaimed.
        """
        met = [
            each for each in self._thresholds if is_met(each, observations, reclaim=each in self._met_since)
        ]
        self._met_since = {each: self._met_since.get(each, now) for each in met}
        for each in met:
            self._last_seen[each.condition] = now
        self.conditions = tuple(
            condition for condition, seen in self._last_seen.items() if now - seen < self._transition_seconds
        )
        due = [each for each, since in self._met_since.items() if now - since >= each.grace_seconds]
        return sorted(due, key=lambda each: each.resource != MEMORY)

    def is_relieved(self, observations: Observations) -> bool:
        """Whether no threshold is met, minimum reclaim included."""
        return not any(is_met(each, observations, reclaim=True) for each in self._thresholds)

    @property
    def is_clear(self) -> bool:
        """Whether there is no pressure, nor was within the transition period."""
        return not self.conditions and not self._met_since


def is_met(threshold: Threshold, observations: Observations, *, reclaim: bool) -> bool:
    """Whether too little is available; with `reclaim`, less than the value and the minimum reclaim."""
    observed = observations.get(threshold.signal)
    if observed is None:
        return False
    wanted = threshold.value.of(observed.capacity)
    if reclaim and threshold.reclaim is not None:
        wanted += threshold.reclaim.of(observed.capacity)
    return observed.available < wanted
