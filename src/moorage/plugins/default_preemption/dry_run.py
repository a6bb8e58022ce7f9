"""Dry runs of preemption: victims are selected on nodes without evicting them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.default_preemption.victims import Victims, VictimStats

SelectVictims = Callable[[Nodes, Diagnosis], tuple[Victims, NDArray[np.bool_]]]
"""The pods of lower priority on nodes, and which of them are victims; refusals go into the diagnosis."""


class DryRun(Protocol):
    """Selects victims on nodes without evicting them."""

    stats: VictimStats

    def evaluate(self, rows: NDArray[np.intp]) -> None:
        """Compute the victim statistics of some rows, as far as they are unknown."""

    def victims_on(self, row: int) -> tuple[Pod, ...]:
        """The victims on a node that was evaluated, the most important first."""

    def explain(self, nodes: Nodes, found: Diagnosis) -> None:
        """Record why preemption does not help on nodes, all of which were evaluated."""


class UncachedDryRun:
    """Evaluates every row, in columns."""

    def __init__(self, snapshot: Snapshot, select_victims_on_nodes: SelectVictims) -> None:
        self.stats = VictimStats(len(snapshot))
        self._snapshot = snapshot
        self._select_victims = select_victims_on_nodes
        self._found = Diagnosis(len(snapshot))
        self._parts: list[tuple[Victims, NDArray[np.bool_]]] = []

    def evaluate(self, rows: NDArray[np.intp]) -> None:
        """Compute the victim statistics of some rows, which are new."""
        victims, removed = self._select_victims(Nodes(self._snapshot, rows), self._found)
        self.stats.put_all(rows, victims, removed)
        self._parts.append((victims, removed))

    def victims_on(self, row: int) -> tuple[Pod, ...]:
        """The victims on a node that was evaluated, the most important first."""
        parts = (victims.removed_from(row, removed) for victims, removed in self._parts)
        return next(pods for pods in parts if pods is not None)

    def explain(self, nodes: Nodes, found: Diagnosis) -> None:
        """Record why preemption does not help on nodes, all of which were evaluated."""
        codes = (nodes.pick(self._found.codes) + 1).astype(np.int16)
        found.refuse_cached(nodes, codes, self._found.refusals)
