"""Choices of a group's cycle in a replay: the recorded ones, with everything else compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from moorage.engine.decision import Decision
from moorage.engine.group_result import GroupResult
from moorage.framework.interface.pod_groups import Placement, PlacementAssignments, PodGroupInfo
from moorage.framework.runtime.scores import ScoreTable
from moorage.sim.difference import Differ, Difference, compare_scores, within
from moorage.sim.group_recording import RecordedCycle, RecordedMember, RecordedPlacement, RecordedSimulation


@dataclass(slots=True, eq=False)
class _Level:
    """What is recorded of one level of a hierarchy, as far as it was not followed yet."""

    placements: list[RecordedPlacement]
    chosen: Mapping[str, str | None]
    scores: Mapping[str, Mapping[str, Mapping[str, int]]]
    members: list[RecordedMember]
    tried: RecordedPlacement | None = None
    """The placement around this level; None: it is the root's, or not recorded."""

    @classmethod
    def of(cls, recorded: RecordedSimulation) -> _Level:
        return cls(list(recorded.simulations), recorded.chosen, recorded.placement_scores, [])

    @classmethod
    def inside(cls, recorded: RecordedPlacement | None) -> _Level:
        if recorded is None:
            return cls([], {}, {}, [])
        inner, members = list(recorded.inner), list(recorded.members)
        return cls(inner, recorded.chosen, recorded.placement_scores, members, recorded)


class RecordedChoices:
    """Follows the recorded choices of one cycle, and notes what differs."""

    reads_decisions = True

    def __init__(self, recorded: RecordedCycle, differ: Differ) -> None:
        self.differences: list[Difference] = []
        self._differ = differ
        self._preemption = recorded.preemption
        self._levels = [_Level.of(recorded)]

    def _note(self, what: str, recorded: object, ours: object, node: str = "") -> None:
        self.differences.append(self._differ(what, recorded, ours, node))

    def _next_attempt(self) -> None:
        """The placements of the attempt without pods of lower priority follow those of the first."""
        if len(self._levels) == 1 and not self._levels[0].placements and self._preemption is not None:
            self._levels, self._preemption = [_Level.of(self._preemption)], None

    def placements(self, group: PodGroupInfo, placements: Sequence[Placement]) -> Sequence[Placement]:
        """In the recorded order."""
        self._next_attempt()
        recorded = [each.placement for each in self._levels[-1].placements if each.of == group.key.name]
        by_name = {each.name: each for each in placements}
        if set(recorded) != by_name.keys():
            self._note("placements", sorted(recorded), sorted(by_name), group.key.name)
        return [by_name[name] for name in recorded if name in by_name] or placements

    def children(self, group: PodGroupInfo) -> Sequence[PodGroupInfo]:
        """In the order in which their placements are recorded."""
        order = {each.of: index for index, each in reversed(list(enumerate(self._levels[-1].placements)))}
        last = len(order) + len(self._levels[-1].placements)
        return sorted(group.children, key=lambda child: order.get(child.key.name, last))

    def trying(self, group: PodGroupInfo, placement: Placement) -> None:
        """The next recorded placement is tried."""
        self._next_attempt()
        level = self._levels[-1]
        recorded = level.placements.pop(0) if level.placements else None
        ours = (group.key.name, placement.name)
        if recorded is None or (recorded.of, recorded.placement) != ours:
            self._note("placement", recorded and (recorded.of, recorded.placement), ours)
            recorded = None
        elif recorded.nodes is not None and recorded.nodes != len(placement.nodes):
            self._note("nodes", recorded.nodes, len(placement.nodes), placement.name)
        self._levels.append(_Level.inside(recorded))

    def node(self, decision: Decision) -> str | None:
        """The recorded node."""
        members = self._levels[-1].members
        if not members:
            self._note("member", None, decision.pod.key)
            return decision.node
        recorded = members.pop(0)
        if recorded.pod != decision.pod.key:
            self._note("member", recorded.pod, decision.pod.key)
            return decision.node
        message = decision.message or None
        if recorded.message != message:
            self._note("message", recorded.message, message, recorded.pod)
        if recorded.feasible is not None and recorded.feasible != len(decision.feasible):
            self._note("feasible", recorded.feasible, len(decision.feasible), recorded.pod)
        if recorded.scores is not None:
            if recorded.scores.keys() == set(decision.feasible.names):
                self.differences += compare_scores(
                    recorded.scores, decision, partial(within, self._differ, recorded.pod)
                )
            else:
                self._note("feasible", sorted(recorded.scores), sorted(decision.feasible.names), recorded.pod)
        return recorded.node

    def tried(self, placement: Placement, result: GroupResult) -> None:
        """Compare how it ended."""
        level = self._levels.pop()
        if level.members:
            self._note("members", [each.pod for each in level.members], [], placement.name)
        recorded = level.tried
        if recorded is None or recorded.code is None:
            return
        ours = (result.status.code.value, result.status.message)
        if (recorded.code, recorded.message) != ours:
            self._note("placement status", (recorded.code, recorded.message), ours, placement.name)

    def best(
        self, group: PodGroupInfo, feasible: Sequence[PlacementAssignments], scores: ScoreTable | None
    ) -> int:
        """The recorded one."""
        level, name = self._levels[-1], group.key.name
        if scores is not None:
            ours = {
                each.placement.name: {
                    plugin: int(points[index]) for plugin, points in scores.by_plugin.items()
                }
                for index, each in enumerate(feasible)
            }
            if ours != level.scores.get(name):
                self._note("placement scores", level.scores.get(name), ours, name)
        chosen = level.chosen.get(name)
        for index, each in enumerate(feasible):
            if each.placement.name == chosen:
                return index
        if any(each.assignments for each in feasible):  # Where nothing was left to place, none is recorded.
            self._note("chosen", chosen, [each.placement.name for each in feasible], name)
        return 0
