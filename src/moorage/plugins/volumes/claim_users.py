"""Which claims pods on nodes use; only rows that have changed are read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from moorage.cluster.row_reader import RowReader
from moorage.cluster.snapshot import Snapshot

_NONE: frozenset[str] = frozenset()


class ClaimUsers:
    """The number of nodes with pods that use each claim, by namespace/name."""

    def __init__(self) -> None:
        self._reader = RowReader()
        self._on_row: list[frozenset[str]] = []
        self._nodes_of: Counter[str] = Counter()

    def has_any(self, claims: Iterable[str], snapshot: Snapshot) -> bool:
        """Whether a pod on any node uses one of the claims."""
        self._catch_up(snapshot)
        return any(claim in self._nodes_of for claim in claims)

    def _catch_up(self, snapshot: Snapshot) -> None:
        rows: Iterable[int] | None = self._reader.new_rows(snapshot, snapshot.load_changes)
        if rows is None:
            self._nodes_of.clear()
            self._on_row = [_NONE] * len(snapshot)
            rows = range(len(snapshot))
        for row in rows:
            before, now = self._on_row[row], snapshot.claims[row] or _NONE
            if now is not before:
                self._on_row[row] = now
                self._nodes_of.update(now - before)
                for claim in before - now:
                    self._nodes_of[claim] -= 1
                    if not self._nodes_of[claim]:
                        del self._nodes_of[claim]
