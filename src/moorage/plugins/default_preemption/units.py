"""Preemption units: what is evicted at once, a pod or a group as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey, group_of
from moorage.cluster.pod_groups import PodGroups
from moorage.cluster.pod_table import PodInfo, start_microseconds
from moorage.plugins.default_preemption.budgets import Budgets

_POD, _POD_GROUP, _COMPOSITE_POD_GROUP = 1, 2, 3
"""Of equal priority, the more important units."""
InfoOf = Callable[[str], PodInfo | None]


@dataclass(frozen=True, slots=True, eq=False)
class PreemptionUnit:
    """Pods that are evicted together, or not at all.

    priority: that of the root group, if they have one. is_of_group: whether they belong to a group.
    """

    infos: Sequence[PodInfo]
    priority: int
    rank: int

    @property
    def is_of_group(self) -> bool:
        """Whether a group loses pods with it."""
        return self.rank != _POD

    @property
    def importance(self) -> tuple[int, int, int, int]:
        """Sorts the most important unit first."""
        started = min(map(start_microseconds, self.infos))
        return (-self.priority, -self.rank, -len(self.infos), started)

    @property
    def pods(self) -> list[Pod]:
        """The pods."""
        return [info.pod for info in self.infos]


def units_of(infos: Iterable[PodInfo], groups: PodGroups, everywhere: InfoOf) -> Iterator[PreemptionUnit]:
    """The units to which some pods belong, each once.

    everywhere: the info of a pod on any node, by uid.
    """
    seen: set[GroupKey] = set()
    for info in infos:
        pod = info.pod
        whole = groups.evicted_with(pod)
        if whole is None:
            rank = _POD if group_of(pod) is None else _POD_GROUP
            yield PreemptionUnit((info,), groups.priority_of(pod), rank)
        elif whole not in seen:
            seen.add(whole)
            members = [each for pod in groups.scheduled(whole) if (each := everywhere(pod.uid)) is not None]
            rank = _COMPOSITE_POD_GROUP if whole.is_composite else _POD_GROUP
            yield PreemptionUnit(members or (info,), groups.priority_of(pod), rank)


def in_reprieve_order(units: Sequence[PreemptionUnit], budgets: Budgets) -> list[tuple[PreemptionUnit, int]]:
    """Units in the order in which they are spared, with the number of their pods that violate a budget.

    Those that violate one come first. Budgets are used up in order of importance.
    """
    ordered = sorted(units, key=lambda unit: unit.importance)
    violations = iter(budgets.pdb_violations_on_node([info for unit in ordered for info in unit.infos]))
    counted = [(unit, sum(next(violations) for _ in unit.infos)) for unit in ordered]
    return sorted(counted, key=lambda each: not each[1])
