"""A reader of the pods on nodes: asks which of them came and went since it last asked."""

from __future__ import annotations

from moorage.cluster.pod_table import PodInfo, PodTable


class PodReader:
    """Reads one pod table, that of a snapshot; if it is given another one, all its pods are new.

    A pod that was changed in a way that scheduling reads (resized, terminating) went and came. What was added
    for an info can be taken away for the same info later: it is one object, with the same values.
    """

    __slots__ = ("_infos", "_position", "_table")

    def __init__(self) -> None:
        self._table: PodTable | None = None
        self._position = 0
        self._infos: list[PodInfo] = []
        """The infos that were read last, by row."""

    def moves(self, table: PodTable) -> list[tuple[PodInfo, int]]:
        """The pods that came (1) and went (-1) since the last call, as far as they are different."""
        if table is not self._table:
            known, self._table, self._infos = self._infos, table, list(table.infos)
            self._position = table.written.position
            return [*((info, -1) for info in known), *((info, 1) for info in table.infos)]
        if table.written.position == self._position:
            return self._appended(table, [])
        return self._appended(table, self._rewritten(table))

    def _rewritten(self, table: PodTable) -> list[tuple[PodInfo, int]]:
        """The moves in rows that were there before."""
        infos, known = table.infos, self._infos
        moves = [(info, -1) for info in known[len(infos) :]]
        del known[len(infos) :]
        written = table.written.since(self._position)
        self._position = table.written.position
        for row in range(len(known)) if written is None else written:
            if row < len(known) and known[row] is not infos[row]:
                moves += ((known[row], -1), (infos[row], 1))
                known[row] = infos[row]
        return moves

    def _appended(self, table: PodTable, moves: list[tuple[PodInfo, int]]) -> list[tuple[PodInfo, int]]:
        new = table.infos[len(self._infos) :]
        if new:
            self._infos += new
            moves += [(info, 1) for info in new]
        return moves
