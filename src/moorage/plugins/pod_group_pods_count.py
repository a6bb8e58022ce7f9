"""PodGroupPodsCount: the placement where most members of a group run is the best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.client import kinds
from moorage.client.kinds import Kind
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.extension_points import MAX_SCORE, Scores
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.pod_groups import PlacementAssignments, PodGroupInfo


class PodGroupPodsCount:
    """Counts the members that run already, and those that would get a node."""

    name = "PodGroupPodsCount"
    watched_kinds: tuple[Kind, ...] = (kinds.POD_GROUP, kinds.COMPOSITE_POD_GROUP)

    def __init__(self, handle: Handle) -> None:
        self._groups = handle.pod_groups
        self.watched_kinds = self._groups.watched_kinds

    def placement_score(
        self, cycle: CycleState, group: PodGroupInfo, placements: Sequence[PlacementAssignments]
    ) -> Scores:
        """The number of members with nodes."""
        running = sum(map(self._groups.scheduled_count, self._groups.leaves(group.key)))
        return np.array([running + len(each.assignments) for each in placements], np.int64)

    def normalize_placement_score(self, cycle: CycleState, group: PodGroupInfo, scores: Scores) -> Scores:
        """Per cent of the largest number."""
        most = int(scores.max())
        if not most:
            raise ValueError("no pods from pod group are assigned to any of the candidate placements")
        return scores * MAX_SCORE // most
