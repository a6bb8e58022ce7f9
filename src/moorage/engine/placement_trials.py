"""What was tried in the cycle of a group: placements with their scores, and each member's nodes in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from moorage.api.pod_groups import GroupKey
from moorage.engine.decision import Decision
from moorage.engine.group_choices import GroupChoices
from moorage.engine.group_result import GroupDecision, GroupResult
from moorage.framework.interface.pod_groups import Placement, PlacementAssignments, PodGroupInfo
from moorage.framework.interface.status import Code
from moorage.framework.runtime.scores import ScoreTable


class MemberTrial(NamedTuple):
    """A member in one placement: the decision about it, and the node that was taken."""

    decision: Decision
    node: str | None


@dataclass(slots=True, eq=False)
class PlacementTrial:
    """A group in one placement.

    members: those that were tried, by uid. inner: the trials of the parts of a composite group.
    code, message: how it ended. scores, total: of the placement, where several were feasible.
    """

    group: GroupKey
    placement: Placement
    members: dict[str, MemberTrial] = field(default_factory=dict)
    inner: list[PlacementTrial] = field(default_factory=list)
    code: Code = Code.UNSCHEDULABLE
    message: str = ""
    is_chosen: bool = False
    scores: dict[str, int] | None = None
    total: int | None = None

    @property
    def is_feasible(self) -> bool:
        """Whether enough of the group can run there."""
        return self.code is Code.SUCCESS


class Trials(NamedTuple):
    """The trials of a cycle.

    first: those in the cluster as it is. without_lower: those without the pods of lower priority.
    """

    first: Sequence[PlacementTrial]
    without_lower: Sequence[PlacementTrial] | None


class NotedChoices:
    """Leaves choices to others, and keeps what was tried."""

    reads_decisions = True

    def __init__(self, choices: GroupChoices) -> None:
        self._choices = choices
        self._attempts: list[list[PlacementTrial]] = []
        """The trials of the root group; those of an attempt without the pods of lower priority follow."""
        self._open: list[PlacementTrial] = []
        self._announced = 0
        """Number of placements of the root group that are to be tried in this attempt."""

    def trials(self, decision: GroupDecision) -> Trials:
        """What was tried for a decision."""
        # If no placement could be generated, what was tried belongs to the attempt without lower priorities.
        is_first_tried = decision.result.placement is not None or decision.root_code is Code.ERROR
        attempts = self._attempts if is_first_tried else [[], *self._attempts]
        return Trials(attempts[0] if attempts else [], attempts[1] if len(attempts) > 1 else None)

    @property
    def _level(self) -> list[PlacementTrial]:
        return self._open[-1].inner if self._open else self._attempts[-1]

    def _begin_attempt(self, placements: int) -> None:
        self._attempts.append([])
        self._announced = placements

    def placements(self, group: PodGroupInfo, placements: Sequence[Placement]) -> Sequence[Placement]:
        """In the chosen order."""
        if not self._open:
            self._begin_attempt(len(placements))
        return self._choices.placements(group, placements)

    def children(self, group: PodGroupInfo) -> Sequence[PodGroupInfo]:
        """In the chosen order."""
        return self._choices.children(group)

    def trying(self, group: PodGroupInfo, placement: Placement) -> None:
        """A trial begins."""
        if not self._open:
            if not self._announced:
                self._begin_attempt(1)
            self._announced -= 1
        self._choices.trying(group, placement)
        trial = PlacementTrial(group.key, placement)
        self._level.append(trial)
        self._open.append(trial)

    def node(self, decision: Decision) -> str | None:
        """The chosen node."""
        node = self._choices.node(decision)
        self._open[-1].members[decision.pod.uid] = MemberTrial(_with_own_scores(decision), node)
        return node

    def tried(self, placement: Placement, result: GroupResult) -> None:
        """A trial ended."""
        self._choices.tried(placement, result)
        trial = self._open.pop()
        trial.code, trial.message = result.status.code, result.status.message
        # A group without placements has one trial, and nothing to choose from.
        trial.is_chosen = trial.is_feasible and not placement.name

    def best(
        self, group: PodGroupInfo, feasible: Sequence[PlacementAssignments], scores: ScoreTable | None
    ) -> int:
        """The chosen placement."""
        best = self._choices.best(group, feasible, scores)
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
