"""Dry runs where groups run: on a node with pods of groups, units are evicted, and their pods everywhere.

Other nodes are left to the dry run for pods alone. Only the node itself is filtered; of a unit's pods on
other nodes, the filters that count pods (spreading, affinity) are told.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.pod_groups import PodGroups
from moorage.cluster.pod_table import PodInfo, start_microseconds
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.diagnosis import Diagnosis, Refusal
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.default_preemption.budgets import Budgets
from moorage.plugins.default_preemption.dry_run import DryRun
from moorage.plugins.default_preemption.units import PreemptionUnit, in_reprieve_order, units_of
from moorage.plugins.default_preemption.victims import PotentialVictims, VictimStats


class UnitDryRun:
    """Selects units on nodes with pods of groups, and pods on all others.

    plain: the dry run for nodes without groups. no_victims: the refusal of nodes without units that
    may be evicted. potential: the pods that may be.
    """

    def __init__(
        self,
        plain: DryRun,
        cycle: CycleState,
        pod: Pod,
        snapshot: Snapshot,
        handle: Handle,
        budgets: Budgets,
        no_victims: Refusal,
        potential: PotentialVictims,
    ) -> None:
        self.stats = VictimStats(len(snapshot))
        self._plain = plain
        self._cycle = cycle
        self._pod = pod
        self._snapshot = snapshot
        self._handle = handle
        self._budgets = budgets
        self._no_victims = no_victims
        self._potential = potential
        self._grouped = _rows_with_groups(handle.pod_groups, snapshot)
        self._victims: dict[int, tuple[Pod, ...]] = {}
        self._refusals: dict[int, Refusal] = {}

    def evaluate(self, rows: NDArray[np.intp]) -> None:
        """Compute the victim statistics of some rows, as far as they are unknown."""
        is_grouped = np.isin(rows, self._grouped)
        alone = rows[~is_grouped]
        self._plain.evaluate(alone)
        self.stats.copy_from(self._plain.stats, alone)
        for row in rows[is_grouped].tolist():
            self._evaluate_one(row)

    def _evaluate_one(self, row: int) -> None:
        units = units_of(self._snapshot.pods_of(row).infos, self._handle.pod_groups, self._info)
        lower = [unit for unit in units if self._potential.include_unit(unit.priority, unit.infos)]
        refusal = self._refusal(row, lower) if lower else self._no_victims
        if refusal is not None:
            self._refusals[row] = refusal
            return
        gone, pdb_violations = list(lower), 0
        for unit, violations in in_reprieve_order(lower, self._budgets):
            gone.remove(unit)
            if self._refusal(row, gone) is not None:
                gone.append(unit)
                pdb_violations += violations
        gone.sort(key=lambda unit: unit.importance)
        victims = [info for unit in gone for info in unit.infos]
        self._victims[row] = tuple(info.pod for info in victims)
        priorities = [info.pod.priority for info in victims]
        self.stats.put(row, priorities, list(map(start_microseconds, victims)), pdb_violations)

    def _refusal(self, row: int, gone: Sequence[PreemptionUnit]) -> Refusal | None:
        """Why a node is rejected without some units; None if it passes."""
        snapshot, name = self._snapshot, self._snapshot.names[row]
        infos = [info for unit in gone for info in unit.infos]
        here = [info.pod.uid for info in infos if info.pod.spec.node_name == name]
        elsewhere = [info for info in infos if info.pod.spec.node_name != name]
        removed = np.array(snapshot.pods.rows_of(here), np.intp)
        changes = HypotheticalPods(snapshot, 1, np.zeros_like(removed), removed)
        node = Nodes(snapshot, np.array((row,), np.intp), changes)
        cycle = self._cycle
        if elsewhere:
            cycle = self._handle.without_pods(cycle, self._pod, snapshot, elsewhere)
        diagnosis = Diagnosis(len(snapshot))
        if len(self._handle.run_filters(cycle, self._pod, node, diagnosis)):
            return None
        return diagnosis.of(row)

    def _info(self, uid: str) -> PodInfo | None:
        pods = self._snapshot.pods
        return next((pods.infos[row] for row in pods.rows_of([uid])), None)

    def victims_on(self, row: int) -> tuple[Pod, ...]:
        """The victims on a node that was evaluated, the most important first."""
        return self._victims[row] if row in self._victims else self._plain.victims_on(row)

    def explain(self, nodes: Nodes, found: Diagnosis) -> None:
        """Record why preemption does not help on nodes, all of which were evaluated."""
        rows = nodes.row_numbers()
        self._plain.explain(nodes.where(~np.isin(rows, self._grouped)), found)
        refusals = list(dict.fromkeys(self._refusals.values()))
        code = {refusal: index + 1 for index, refusal in enumerate(refusals)}
        grouped = nodes.where(np.isin(rows, list(self._refusals)))
        codes = [code[self._refusals[row]] for row in grouped.row_numbers().tolist()]
        found.refuse_cached(grouped, np.array(codes, np.int16), refusals)


def _rows_with_groups(groups: PodGroups, snapshot: Snapshot) -> NDArray[np.intp]:
    """The rows where pods of groups run."""
    names = {pod.spec.node_name for pod in groups.all_scheduled()}
    return np.array([snapshot.row_of[name] for name in names if name in snapshot.row_of], np.intp)
