"""Which rows of a snapshot somebody must look at who knows what was there the last time."""

from __future__ import annotations

from moorage.cluster.row_log import RowLog
from moorage.cluster.snapshot import Snapshot


class RowReader:
    """Reads a log of a snapshot: the same snapshot's, as a rule, time after time."""

    __slots__ = ("_position", "_snapshot")

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._position = 0

    def new_rows(self, snapshot: Snapshot, log: RowLog) -> list[int] | None:
        """The rows noted since the last time; None if nothing that is known by row holds any more."""
        rows = log.since(self._position) if snapshot is self._snapshot else None
        self._snapshot, self._position = snapshot, log.position
        return rows
