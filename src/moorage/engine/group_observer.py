"""Events of a group's cycle, for metrics."""

from __future__ import annotations


class GroupCycleObserver:
    """Receives what the result of a group's cycle does not tell; does nothing itself."""

    def member_tried(self, seconds: float) -> None:
        """A node was looked for, for a member; in each placement, and in dry runs, too."""

    def group_algorithm_ended(self) -> None:
        """Nodes were looked for, for all members; room is made after that."""

    def placements_generated(self, profile: str, count: int) -> None:
        """A PodGroup has placements."""

    def placement_evaluated(self, profile: str, *, is_feasible: bool, seconds: float) -> None:
        """A placement was tried for a PodGroup."""
