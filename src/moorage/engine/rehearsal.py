"""A group of alike members in one placement after another: which nodes they would get, and nothing else.

What a group's cycle finds by deciding about each member is found here from the answers for all of them
(`alike_members`), so that placements can be compared; members are decided for in the best one only.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.engine.alike_members import AlikeMembers
from moorage.engine.group_result import GroupStatus
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.pod_groups import (
    Assignment,
    Placement,
    PlacementProgress,
    PodGroupInfo,
)
from moorage.framework.interface.status import Status
from moorage.framework.runtime.framework import Framework

_Judge = Callable[[int, int], Status]
"""A verdict on a placement, by the numbers of members that are scheduled and that remain."""


class Rehearsal:
    """Rehearses the scheduling of a group in its placements.

    scheduled: how many members run already.
    """

    def __init__(
        self, framework: Framework, group: PodGroupInfo, members: AlikeMembers, scheduled: int
    ) -> None:
        self._framework = framework
        self._group = group
        self._members = members
        self._scheduled = scheduled
        self._is_judged_alike = not framework.has_outside("placement_feasible")
        """Whether verdicts are the same in all placements."""
        self._verdicts = self._new_verdicts()

    def in_placement(self, placement: Placement) -> tuple[GroupStatus, list[str | None]]:
        """How scheduling ends in a placement, and the nodes of the members that were tried, in turn."""
        judge = self._verdicts if self._is_judged_alike else self._new_verdicts()
        nodes: list[str | None] = []
        scheduled, remaining = self._scheduled, len(self._group.pods)
        verdict = judge(scheduled, remaining)
        if status := GroupStatus.at_start(verdict):
            return status, nodes
        in_turn = self._members.in_placement(placement.nodes)
        for _ in self._group.pods:
            node = in_turn.next_node()
            nodes.append(node)
            remaining -= 1
            scheduled += node is not None
            verdict = judge(scheduled, remaining)
            if status := GroupStatus.after_member(verdict):
                return status, nodes
        return GroupStatus.at_end(verdict), nodes

    def _new_verdicts(self) -> _Judge:
        """Verdicts on a placement: equal progress is judged once."""
        cycle, known = CycleState(), dict[tuple[int, int], Status]()

        def judge(scheduled: int, remaining: int) -> Status:
            verdict = known.get((scheduled, remaining))
            if verdict is None:
                progress = PlacementProgress(scheduled, remaining)
                verdict = self._framework.placement_feasible(cycle, self._group, progress)
                known[scheduled, remaining] = verdict
            return verdict

        return judge

    def assignments(self, nodes: list[str | None]) -> list[Assignment]:
        """The members that have nodes."""
        cycle = self._members.cycle
        return [
            Assignment(pod, node, cycle)
            for pod, node in zip(self._group.pods, nodes, strict=False)
            if node is not None
        ]
