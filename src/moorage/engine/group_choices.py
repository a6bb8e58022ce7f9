"""What is left to chance in a group's cycle: the order of placements and child groups, and ties."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

import numpy as np

from moorage.engine.decision import Decision
from moorage.engine.group_result import GroupResult
from moorage.framework.interface.pod_groups import Placement, PlacementAssignments, PodGroupInfo
from moorage.framework.runtime.scores import ScoreTable


class GroupChoices(Protocol):
    """Makes the choices of a group's cycle, and is shown its steps.

    reads_decisions: whether a member's node depends on more of its decision than the node that was chosen.
    """

    reads_decisions: bool

    def placements(self, group: PodGroupInfo, placements: Sequence[Placement]) -> Sequence[Placement]:
        """The order in which placements are tried."""

    def children(self, group: PodGroupInfo) -> Sequence[PodGroupInfo]:
        """The order in which the parts of a composite group are tried."""

    def node(self, decision: Decision) -> str | None:
        """The node of a member, one of those with the best score; None: there is none."""

    def trying(self, group: PodGroupInfo, placement: Placement) -> None:
        """A placement is going to be tried."""

    def tried(self, placement: Placement, result: GroupResult) -> None:
        """A placement was tried."""

    def best(
        self, group: PodGroupInfo, feasible: Sequence[PlacementAssignments], scores: ScoreTable | None
    ) -> int:
        """The index of the best placement; scores: None if there is only one."""


class RandomChoices:
    """Chooses at random."""

    reads_decisions = False

    def __init__(self, random: Random) -> None:
        self._random = random

    def placements(self, group: PodGroupInfo, placements: Sequence[Placement]) -> Sequence[Placement]:
        """As generated: which one is first decides nothing but whose status is shown."""
        return placements

    def children(self, group: PodGroupInfo) -> Sequence[PodGroupInfo]:
        """In any order."""
        return self._random.sample(group.children, len(group.children))

    def node(self, decision: Decision) -> str | None:
        """The node that the decision chose."""
        return decision.node

    def trying(self, group: PodGroupInfo, placement: Placement) -> None:
        """Nothing to do."""

    def tried(self, placement: Placement, result: GroupResult) -> None:
        """Nothing to do."""

    def best(
        self, group: PodGroupInfo, feasible: Sequence[PlacementAssignments], scores: ScoreTable | None
    ) -> int:
        """Any of those with the best total."""
        if scores is None:
            return 0
        return int(self._random.choice(np.flatnonzero(scores.totals == scores.totals.max())))
