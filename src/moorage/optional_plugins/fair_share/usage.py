"""What one owner has of each resource, and had.

Past use is the moving average of what the owner had: with a half-life of an hour, what it had in the last
hour counts as much as all the time before. While `a` units are held from time s on, it is

    past(t) = a + (past(s) - a) * 2 ** -((t - s) / half-life)

so nothing has to be done as time passes, only when pods come and go. It has the unit of what is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PODS: Final = "pods"
"""The number of pods as a resource: every pod counts, even one without requests."""
_FORGOTTEN: Final = 64.0
"""Number of half-lives after which past use is nothing."""


class Usage:
    """One owner's use of the cluster. Amounts are in the units of nodes: milli-CPU, bytes, counts."""

    __slots__ = ("_changed_at", "_past", "held")

    def __init__(self, now: float) -> None:
        self.held: dict[str, int] = {}
        """What the owner's pods on nodes request; resources of which it has none are left out."""
        self._past: dict[str, float] = {}
        """The average at the time of the last change."""
        self._changed_at = now

    def change(self, amounts: Mapping[str, int], count: int, now: float, half_life: float) -> None:
        """A pod with some requests came (1) or left (-1)."""
        if half_life and now > self._changed_at:
            self._past = self.past(now, half_life)
            self._changed_at = now
        self._add(PODS, count)
        for name, amount in amounts.items():
            self._add(name, count * amount)

    def _add(self, name: str, amount: int) -> None:
        total = self.held.get(name, 0) + amount
        if total:
            self.held[name] = total
        else:
            self.held.pop(name, None)

    def past(self, now: float, half_life: float) -> dict[str, float]:
        """The average at a time, by resource; before the last change, it is that of the last change."""
        if not half_life:
            return {}
        past, held = self._past, self.held
        age = max(now - self._changed_at, 0.0) / half_life
        fading = 0.5**age
        averages = {name: amount + (past.get(name, 0.0) - amount) * fading for name, amount in held.items()}
        if age < _FORGOTTEN and not past.keys() <= held.keys():
            averages |= {name: amount * fading for name, amount in past.items() if name not in held}
        return averages

    def is_nothing(self, now: float, half_life: float) -> bool:
        """Whether the owner has nothing, and had nothing that counts."""
        return not self.held and not (half_life and self._past and self._fades(now, half_life))

    def _fades(self, now: float, half_life: float) -> bool:
        return now - self._changed_at < _FORGOTTEN * half_life

    def counted(self, now: float, half_life: float) -> Mapping[str, float]:
        """What the order goes by: what the owner has and past use, by resource."""
        if not half_life:
            return self.held
        counted = self.past(now, half_life)
        for name, amount in self.held.items():
            counted[name] += amount
        return counted
