"""What was tried in the cycle of a group: placements with their scores, and each member's nodes in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from msgspec.structs import replace

from moorage.api.pod_groups import GroupKey
from moorage.engine.decision import Decision
from moorage.engine.group_choices import RandomChoices
from moorage.engine.group_result import GroupResult
from moorage.framework.interface.pod_groups import Placement, PlacementAssignments, PodGroupInfo
from moorage.framework.runtime.scores import ScoreTable


@dataclass(slots=True, eq=False)
class PlacementTrial:
    """A group in one placement.

    members: the decisions about the members that were tried, by uid. inner: the trials of the parts of a
    composite group. message: why the placement is not feasible.
    """

    group: GroupKey
    placement: Placement
    members: dict[str, Decision] = field(default_factory=dict)
    inner: list[PlacementTrial] = field(default_factory=list)
    is_feasible: bool = False
    message: str = ""
    is_chosen: bool = False
    scores: dict[str, int] | None = None
    total: int | None = None


class NotedChoices(RandomChoices):
    """Chooses at random, and keeps what was tried.

    attempts: the trials of the root group; those of an attempt without the pods of lower priority follow.
    """

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.attempts: list[list[PlacementTrial]] = []
        self._open: list[PlacementTrial] = []
        self._announced = 0
        """Number of placements of the root group that are to be tried in this attempt."""

    @property
    def _level(self) -> list[PlacementTrial]:
        return self._open[-1].inner if self._open else self.attempts[-1]

    def _begin_attempt(self, placements: int) -> None:
        self.attempts.append([])
        self._announced = placements

    def placements(self, group: PodGroupInfo, placements: Sequence[Placement]) -> Sequence[Placement]:
        """As generated."""
        if not self._open:
            self._begin_attempt(len(placements))
        return super().placements(group, placements)

    def trying(self, group: PodGroupInfo, placement: Placement) -> None:
        """A trial begins."""
        if not self._open:
            if not self._announced:
                self._begin_attempt(1)
            self._announced -= 1
        trial = PlacementTrial(group.key, placement)
        self._level.append(trial)
        self._open.append(trial)

    def node(self, decision: Decision) -> str | None:
        """The node that the decision chose."""
        if len(self.attempts) == 1:
            self._open[-1].members[decision.pod.uid] = _with_own_scores(decision)
        return super().node(decision)

    def tried(self, placement: Placement, result: GroupResult) -> None:
        """A trial ended."""
        trial = self._open.pop()
        trial.is_feasible, trial.message = result.status.is_success, result.status.message
        # A group without placements has one trial, and nothing to choose from.
        trial.is_chosen = trial.is_feasible and not placement.name

    def best(
        self, group: PodGroupInfo, feasible: Sequence[PlacementAssignments], scores: ScoreTable | None
    ) -> int:
        """Any of those with the best total."""
        best = super().best(group, feasible, scores)
        trials = {trial.placement: trial for trial in self._level if trial.group == group.key}
        for index, each in enumerate(feasible):
            trial = trials[each.placement]
            trial.is_chosen = index == best
            if scores is not None:
                trial.total = int(scores.totals[index])
                trial.scores = {plugin: int(points[index]) for plugin, points in scores.by_plugin.items()}
        return best


def _with_own_scores(decision: Decision) -> Decision:
    """A decision that can be read later: the next pod's cycle may write to the arrays of its scores."""
    scores = decision.scores
    if scores is None:
        return decision
    by_plugin = {plugin: points.copy() for plugin, points in scores.by_plugin.items()}
    return replace(decision, scores=ScoreTable(scores.totals.copy(), lambda: by_plugin))
