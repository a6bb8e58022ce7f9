"""A reader's position in a snapshot's change log."""

from __future__ import annotations

from moorage.cluster.row_log import RowLog
from moorage.cluster.snapshot import Snapshot


class RowReader:
    """Reads a change log of a snapshot, which is usually the same snapshot every time."""

    __slots__ = ("_position", "_snapshot")

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._position = 0

    def new_rows(self, snapshot: Snapshot, log: RowLog) -> list[int] | None:
        """The rows written since the last call; None if no derived state by row is valid any more."""
        rows = log.since(self._position) if snapshot is self._snapshot else None
        self._snapshot, self._position = snapshot, log.position
        return rows
