"""Why a pod is unschedulable: which plugin rejected which node, and for what reason.

Stored as one code per node; texts are made on demand, and a message counts codes without visiting nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.framework.interface.filter_result import FilterResult, Reason
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import Code, Status

_NOT_REFUSED = -1


class Refusal(msgspec.Struct, frozen=True):
    """One plugin's reason; many nodes may share it."""

    plugin: str
    reason: Reason


class Diagnosis(msgspec.Struct, eq=False):
    """The refusals of one attempt, over all `total` nodes of the cluster.

    outside: how many of them are outside the placement of the pod's group, and do not count.
    """

    total: int
    left_out: Status | None = None
    """The status of nodes that pre-filters left out."""
    pre_filter: Status | None = None
    """The rejection by a pre-filter, which holds for all nodes."""
    post_filter_message: str = ""
    outside: int = 0
    pending_plugins: set[str] = msgspec.field(default_factory=set)
    _refusals: list[Refusal] = msgspec.field(default_factory=list)
    _codes: NDArray[np.int32] | None = None
    _first: NDArray[np.int16] | None = None
    """The cached results of all nodes that `_codes` are made from, where nothing else was recorded before."""
    _plugins: set[str] = msgspec.field(default_factory=set)
    _cached: tuple[Nodes, NDArray[np.int16], list[Refusal], list[int] | None] | None = None
    """Cached results, not recorded yet: they are not needed where a pod gets a node."""
    _counts: list[int] | None = None
    """Number of nodes without a refusal, and with each of those that there are; None: not counted yet."""

    @property
    def refusals(self) -> list[Refusal]:
        """The reasons that there are."""
        self._flush_cached()
        return self._refusals

    @property
    def codes(self) -> NDArray[np.int32]:
        """Index into `refusals` for each row of the snapshot; -1 where no filter rejected."""
        self._flush_cached()
        if self._codes is None:
            if self._first is None:
                self._codes = np.full(self.total, _NOT_REFUSED, np.int32)
            else:
                self._codes = np.add(self._first, _NOT_REFUSED, dtype=np.int32)
        return self._codes

    @property
    def plugins(self) -> set[str]:
        """The plugins that rejected the pod; their events requeue it."""
        self._flush_cached()
        return self._plugins

    def refuse(self, plugin: str, nodes: Nodes, result: FilterResult) -> None:
        """Record a filter's result over nodes."""
        assert result.codes is not None
        self._flush_cached()
        self._counts = None
        refused = np.flatnonzero(result.codes)
        rows = refused if nodes.rows is None else nodes.rows[refused]
        self.codes[rows] = result.codes[refused].astype(np.int32) + (len(self.refusals) - 1)
        self.refusals.extend(Refusal(plugin, reason) for reason in result.reasons)
        self.plugins.add(plugin)

    def refuse_cached(
        self,
        nodes: Nodes,
        codes: NDArray[np.int16],
        refusals: list[Refusal],
        counts: list[int] | None = None,
    ) -> None:
        """Record cached results of nodes: 0, or 1 + index into `refusals`. The codes must not change.

        counts: the number of nodes with each code, if that is known.
        """
        self._flush_cached()
        self._cached = (nodes, codes, refusals, counts)

    def _flush_cached(self) -> None:
        if self._cached is None:
            return
        (nodes, codes, refusals, counts), self._cached = self._cached, None
        counts = np.bincount(codes, minlength=1).tolist() if counts is None else counts
        if nodes.rows is None and self._codes is None and self._first is None:
            self._first = codes
            self._counts = counts
        else:
            refused = np.flatnonzero(codes)
            rows = refused if nodes.rows is None else nodes.rows[refused]
            self.codes[rows] = codes[refused].astype(np.int32) + (len(self._refusals) - 1)
            self._counts = None
        self._refusals.extend(refusals)
        for refusal, count in zip(refusals, counts[1:], strict=False):
            if count:
                self._plugins.add(refusal.plugin)

    def keep_only(self, rows: NDArray[np.intp]) -> None:
        """Discard the results of all other rows: they were not evaluated."""
        kept = np.full_like(self.codes, _NOT_REFUSED)
        kept[rows] = self.codes[rows]
        self._codes = kept
        self._counts = None

    def refuse_all(self, status: Status) -> None:
        """Record a pre-filter's rejection."""
        self.pre_filter = status
        if status.plugin:
            (self.pending_plugins if status.code is Code.PENDING else self.plugins).add(status.plugin)

    def of(self, row: int) -> Refusal | None:
        """Why the node in a row was rejected, if a filter rejected it."""
        code = int(self.codes[row])
        return None if code == _NOT_REFUSED else self.refusals[code]

    def code_of(self, row: int) -> Code | None:
        """Whether the node in a row was rejected, and if preemption could help; None if not rejected."""
        refusal = self.of(row)
        if refusal is not None:
            return refusal.reason.code
        status = self.pre_filter or self.left_out
        return None if status is None else status.code

    @property
    def refused_count(self) -> int:
        """How many nodes filters rejected."""
        if self._cached is not None and not self._refusals:
            counts = self._cached[3]
            return int(np.count_nonzero(self._cached[1])) if counts is None else sum(counts[1:])
        return self.total - self.counts()[0] if self.refusals else 0

    def counts(self) -> list[int]:
        """Number of nodes without a refusal, and with each of those that there are."""
        self._flush_cached()
        if self._counts is None:
            self._counts = np.bincount(self.codes - _NOT_REFUSED, minlength=1).tolist()
        return self._counts

    def rejections(self) -> Iterator[tuple[str, Iterable[str], int]]:
        """Each plugin's rejections: the reasons, and the number of nodes."""
        if self.pre_filter is not None:
            yield self.pre_filter.plugin, self.pre_filter.reasons, self.total - self.outside
            return
        absent, *counts = self.counts() if self.refusals else [self.total]
        for refusal, count in zip(self.refusals, counts, strict=False):
            if count:
                yield refusal.plugin, refusal.reason.texts, count
        if self.left_out is not None and absent > self.outside:
            yield self.left_out.plugin, self.left_out.reasons, absent - self.outside

    def tally(self) -> dict[str, int]:
        """Number of nodes by reason; a node with two reasons counts in both."""
        tally: dict[str, int] = {}
        absent, refusals = self.total, self.refusals
        if refusals:
            absent, *counts = self.counts()
            for refusal, count in zip(refusals, counts, strict=False):
                if count:
                    _add(tally, refusal.reason.texts, count)
        if self.left_out is not None and absent > self.outside:
            _add(tally, self.left_out.reasons, absent - self.outside)
        return tally

    def message(self) -> str:
        """The line that users read in the pod's condition and events."""
        parts = [f"0/{self.total - self.outside} nodes are available:"]
        if self.pre_filter is not None and self.pre_filter.message:
            parts.append(f"{self.pre_filter.message}.")
        elif reasons := sorted(f"{count} {reason}" for reason, count in self.tally().items()):
            parts.append(f"{', '.join(reasons)}.")
        if self.post_filter_message:
            parts.append(self.post_filter_message)
        return " ".join(parts)


def _add(tally: dict[str, int], texts: Iterable[str], count: int) -> None:
    """Count nodes for each of their reasons; a text that occurs twice is one."""
    for text in dict.fromkeys(texts):
        tally[text] = tally.get(text, 0) + count
