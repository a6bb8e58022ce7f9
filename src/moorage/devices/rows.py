"""Which rows of a snapshot somebody must look at who knows what was there the last time."""

from __future__ import annotations

from moorage.cluster.snapshot import Snapshot


class RowReader:
    """Reads the nodes of a snapshot as they change: the same snapshot, as a rule, time after time."""

    __slots__ = ("_position", "_snapshot")

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._position = 0

    def new_rows(self, snapshot: Snapshot) -> list[int] | None:
        """The rows whose node was written since the last time; None if nothing known by row holds now."""
        changes = snapshot.node_changes
        rows = changes.since(self._position) if snapshot is self._snapshot else None
        self._snapshot, self._position = snapshot, changes.position
        return rows
