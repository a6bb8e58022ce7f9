"""Counting pods by topology domain: what PodTopologySpread and InterPodAffinity share.

A topology key is a label column, so a domain is a code, and counts by domain are a table by code. Tables
have one more entry at the end, for ABSENT: nodes without the label are in no domain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.columns import CodeColumn

Counts = NDArray[np.int64]


def count_by_domain(
    column: CodeColumn[str], rows: NDArray[Any], weights: NDArray[Any] | None = None
) -> Counts:
    """How many of `rows` (node rows, repeated as often as they count) are in each domain.

    Shape (domains + 1,); the last entry, for nodes without the label, is 0.
    """
    codes = column.codes[rows]
    size = len(column.vocabulary) + 1
    counts = np.bincount(codes + 1, weights, minlength=size)
    return _domains_first(counts).astype(np.int64, copy=False)


def _domains_first(counts: NDArray[Any]) -> NDArray[Any]:
    """From ABSENT first (as bincount has it) to ABSENT last and 0."""
    table = np.empty_like(counts)
    table[:-1] = counts[1:]
    table[-1] = 0
    return table


class DomainCounts:
    """Counts by domain for several topology keys."""

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        self.by_key: dict[str, Counts] = {}

    def add(self, key: str, counts: Counts) -> None:
        """Add counts for a key."""
        present = self.by_key.get(key)
        self.by_key[key] = counts if present is None else present + counts

    def at(self, key: str, domains: NDArray[np.int32]) -> Counts:
        """The count of each of `domains`. Shape of `domains`."""
        counts = self.by_key.get(key)
        return np.zeros(len(domains), np.int64) if counts is None else counts[domains]

    def total(self) -> int:
        """All counts together."""
        return sum(int(counts.sum()) for counts in self.by_key.values())
