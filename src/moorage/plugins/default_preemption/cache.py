"""Victim statistics by node for the pods of one equivalence class, invalidated by changes.

The victims on a node depend on the node, the pods on it and nominated to it, and the budgets that cover those
pods, as long as all filters depend on no more than that (`SingleNodeFilters`). They are computed once, and
again when the row has changed; between one preemptor and the next these are a few. Only statistics are kept:
the victims themselves are selected again for the node that is chosen.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.pod_table import start_microseconds
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.diagnosis import Diagnosis, Refusal
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.single_node_filters import SingleNodeFilters
from moorage.plugins.default_preemption.budgets import Budgets
from moorage.plugins.default_preemption.dry_run import SelectVictims
from moorage.plugins.default_preemption.single_node import SingleNodeDryRun
from moorage.plugins.default_preemption.victims import VictimStats

_MIN_COLUMNAR_ROWS: Final = 40
"""Minimum number of rows for which columns are faster than one node at a time."""


class PreemptionCache:
    """The results of one equivalence class for one snapshot as it changes."""

    def __init__(self, filters: SingleNodeFilters, budgets: Budgets) -> None:
        self.source = filters.source
        self.snapshot: Snapshot = filters.source.snapshot
        self.stats = VictimStats(0)
        self.refusals: list[Refusal] = []
        self.codes = np.zeros(0, np.int16)
        """For each row 0, or why preemption does not help: 1 + index into `refusals`."""
        self.is_stale = np.zeros(0, bool)
        """Which rows are not valid."""
        self.admits = np.zeros(0, bool)
        """Rows that pass all filters that depend on the node alone."""
        self._known_refusals: dict[Refusal, int] = {}
        self._seen = self._nodes_seen = -1
        self._budgets = budgets

    def catch_up(self, budgets: Budgets) -> None:
        """Invalidate the rows that have changed since the last call."""
        snapshot = self.snapshot
        changed = snapshot.changes.since(self._seen)
        nodes_changed = snapshot.node_changes.since(self._nodes_seen)
        if changed is None or nodes_changed is None:
            rows = len(snapshot)
            self.stats, self.codes = VictimStats(rows), np.zeros(rows, np.int16)
            self.is_stale, self.admits = np.ones(rows, bool), np.zeros(rows, bool)
        else:
            if changed:
                self.is_stale[changed] = True
            if nodes_changed:
                self.admits[nodes_changed] = False
            if budgets is not self._budgets and (differing := budgets.differing(self._budgets)) is not None:
                classes = [code for code, each in snapshot.pods.class_codes.items() if differing(each)]
                self.is_stale[snapshot.pods.nodes_of(classes)] = True
        self._seen, self._nodes_seen = snapshot.changes.position, snapshot.node_changes.position
        self._budgets = budgets

    def put_all(self, rows: NDArray[np.intp], found: Diagnosis) -> None:
        """Store why preemption does not help on some of the rows; their statistics are known by now."""
        table = np.array([*map(self.code, found.refusals), 0], np.int16)
        self.codes[rows] = table[found.codes[rows]]
        self.admits[rows] |= self.codes[rows] == 0
        self.is_stale[rows] = False

    def code(self, refusal: Refusal) -> int:
        """The code of a refusal."""
        code = self._known_refusals.get(refusal)
        if code is None:
            self.refusals.append(refusal)
            code = self._known_refusals[refusal] = len(self.refusals)
        return code


class CachedDryRun:
    """A dry run for one pod that evaluates only rows which are not cached.

    no_victims: the refusal of nodes without pods of lower priority.
    """

    def __init__(
        self,
        cache: PreemptionCache,
        pod: Pod,
        one_node: SingleNodeDryRun,
        select_victims_on_nodes: SelectVictims,
        no_victims: Refusal,
    ) -> None:
        self.stats = cache.stats
        self._cache = cache
        self._one_node = one_node
        self._select_victims = select_victims_on_nodes
        self._no_victims = no_victims
        nominated_to = cache.snapshot.nominated.node_of(pod.uid)
        self._own = None if nominated_to is None else cache.snapshot.row_of.get(nominated_to)
        """The row of the node that the pod is nominated to: there it does not count against itself."""
        if self._own is not None:
            cache.is_stale[self._own] = True

    def evaluate(self, rows: NDArray[np.intp]) -> None:
        """Compute the victim statistics of some rows, as far as they are unknown."""
        cache = self._cache
        new = rows[cache.is_stale.take(rows)]
        if not len(new):
            return
        if len(new) < _MIN_COLUMNAR_ROWS:
            for row in new.tolist():
                self._evaluate_one(row)
            cache.is_stale[new] = False
        else:
            snapshot = cache.snapshot
            found = Diagnosis(len(snapshot))
            self.stats.put_all(new, *self._select_victims(Nodes(snapshot, new), found))
            cache.put_all(new, found)
        if self._own is not None:
            cache.is_stale[self._own] = True  # That result is valid for this pod only.

    def _evaluate_one(self, row: int) -> None:
        cache = self._cache
        selection = self._one_node.select_victims(
            cache.snapshot, row, self._no_victims, is_known_node=cache.admits.item(row)
        )
        victims, pdb_violations, refusal = selection
        if refusal is not None:
            self.stats.count[row], cache.codes[row] = 0, cache.code(refusal)
            return
        priorities = [info.priority for info in victims]
        self.stats.put(row, priorities, list(map(start_microseconds, victims)), pdb_violations)
        cache.codes[row], cache.admits[row] = 0, True

    def victims_on(self, row: int) -> tuple[Pod, ...]:
        """The victims on a node that was evaluated, the most important first."""
        victims = self._one_node.victims(self._cache.snapshot, row, self.stats.count.item(row))
        return tuple(info.pod for info in victims)

    def explain(self, nodes: Nodes, found: Diagnosis) -> None:
        """Record why preemption does not help on nodes that were evaluated."""
        found.refuse_cached(nodes, nodes.pick(self._cache.codes), self._cache.refusals)
