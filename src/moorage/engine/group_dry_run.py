"""A group tried in a cluster without some pods: what making room for it would need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.engine.assigned_members import AssignedMembers
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import Assignment, GroupSchedule


class DryRun:
    """A dry run in the cache itself, which `end` undoes.

    schedule: schedules the group. assigned: the members of the group on nodes.
    """

    def __init__(
        self,
        cache: Cache,
        schedule: Callable[[], Awaitable[GroupSchedule]],
        assigned: Callable[[Sequence[Assignment]], AssignedMembers],
    ) -> None:
        self.groups = cache.pod_groups
        self._cache = cache
        self._schedule = schedule
        self._assigned = assigned
        self._set_aside = cache.set_aside(())

    def nodes(self) -> Nodes:
        """All nodes, as they are now in the dry run."""
        return Nodes(self._cache.snapshot())

    def remove(self, pods: Iterable[Pod]) -> None:
        """Remove pods from their nodes."""
        for pod in pods:
            self._set_aside.remove(pod)

    def put_back(self, pods: Iterable[Pod]) -> None:
        """Put removed pods back."""
        for pod in pods:
            self._set_aside.put_back(pod)

    async def schedule(self) -> GroupSchedule:
        """Schedule the group once more."""
        return await self._schedule()

    def fits(self, assignments: Sequence[Assignment]) -> bool:
        """Whether members still pass all filters on their nodes, each assumed there before the next."""
        return self._assigned(assignments).fit()

    def reprieve(self, units: Sequence[Sequence[Pod]], assignments: Sequence[Assignment]) -> list[bool]:
        """Put units of removed pods back in turn, each if members still fit then; which of them are back."""
        members = self._assigned(assignments)
        moving = [self._set_aside.info(pod) for unit in units for pod in unit]
        # If they do not fit at first, a unit could be put back only if it made them fit.
        if members.is_by_node(moving) and not members.refused(members.by_node):
            return self._reprieve_in_waves(units, members)
        return [self._reprieve_one(unit, members) for unit in units]

    def _reprieve_one(self, unit: Sequence[Pod], members: AssignedMembers) -> bool:
        self.put_back(unit)
        if members.fit():
            return True
        self.remove(unit)
        return False

    def _reprieve_in_waves(self, units: Sequence[Sequence[Pod]], members: AssignedMembers) -> list[bool]:
        """The same for units on different nodes at once, where nodes do not depend on each other."""
        nodes_of = [{pod.spec.node_name for pod in unit} & members.by_node.keys() for unit in units]
        is_back = [True] * len(units)
        for wave in _waves(nodes_of):
            for number in wave:
                self.put_back(units[number])
            refused = members.refused({name for number in wave for name in nodes_of[number]})
            for number in wave:
                if not refused.isdisjoint(nodes_of[number]):
                    self.remove(units[number])
                    is_back[number] = False
        return is_back

    def end(self) -> None:
        """Undo all of it."""
        self._set_aside.end()


def _waves(nodes_of: Sequence[Iterable[str]]) -> list[list[int]]:
    """Units by number, in waves: no two of a wave share a node, and where units do, the first comes first."""
    waves: list[list[int]] = []
    next_wave: dict[str, int] = {}
    for number, names in enumerate(nodes_of):
        wave = max((next_wave.get(name, 0) for name in names), default=0)
        if wave == len(waves):
            waves.append([])
        waves[wave].append(number)
        next_wave.update(dict.fromkeys(names, wave + 1))
    return waves
