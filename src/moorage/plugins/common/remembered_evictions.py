"""Who would have to go from which node for the pods of one template, kept true by what changes.

What an eviction comes to on a node rests on the node, the pods on it and nominated to it, and the budgets
that cover those pods, as long as all filters rest on no more than that (`SingleNodeFilters`). So it is found
out once, and again when the row has changed; between one preemptor and the next these are a few. Only figures
are kept: who the victims are is worked out for the node that is chosen.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.diagnosis import Diagnosis, Refusal
from moorage.framework.interface.nodes import Nodes
from moorage.framework.runtime.single_node_filters import SingleNodeFilters
from moorage.plugins.common.budgets import Budgets
from moorage.plugins.common.eviction import NodeTrial
from moorage.plugins.common.losses import DryRun, Losses

_WORTH_COLUMNS: Final = 12
"""From so many nodes on, columns are faster than one node at a time."""


class RememberedEvictions:
    """One template's memory, over one snapshot as it moves."""

    def __init__(self, filters: SingleNodeFilters, budgets: Budgets) -> None:
        self.source = filters.source
        self.snapshot: Snapshot = filters.source.snapshot
        self.losses = Losses(0)
        self.refusals: list[Refusal] = []
        self.codes = np.zeros(0, np.int16)
        """For each row 0, or why evicting does not help: 1 + index into `refusals`."""
        self.is_known = np.zeros(0, bool)
        """Which rows all this is true of."""
        self.admits = np.zeros(0, bool)
        """Where all filters that look at the node alone let the pod in."""
        self._known_refusals: dict[Refusal, int] = {}
        self._seen = self._nodes_seen = -1
        self._budgets = budgets

    def catch_up(self, budgets: Budgets) -> None:
        """Forget what has changed since the last time."""
        snapshot = self.snapshot
        changed = snapshot.changes.since(self._seen)
        nodes_changed = snapshot.node_changes.since(self._nodes_seen)
        if changed is None or nodes_changed is None:
            rows = len(snapshot)
            self.losses, self.codes = Losses(rows), np.zeros(rows, np.int16)
            self.is_known, self.admits = np.zeros(rows, bool), np.zeros(rows, bool)
        else:
            self.is_known[changed] = False
            self.admits[nodes_changed] = False
            if budgets is not self._budgets and (differing := budgets.differing(self._budgets)) is not None:
                classes = [code for code, each in snapshot.pods.class_codes.items() if differing(each)]
                self.is_known[snapshot.pods.nodes_of(classes)] = False
        self._seen, self._nodes_seen = snapshot.changes.position, snapshot.node_changes.position
        self._budgets = budgets

    def put_all(self, rows: NDArray[np.intp], found: Diagnosis) -> None:
        """Take down why evicting does not help on some of the rows; their losses are known by now."""
        table = np.array([*map(self.code, found.refusals), 0], np.int16)
        self.codes[rows] = table[found.codes[rows]]
        self.admits[rows] |= self.codes[rows] == 0
        self.is_known[rows] = True

    def code(self, refusal: Refusal) -> int:
        """What stands for a refusal."""
        code = self._known_refusals.get(refusal)
        if code is None:
            self.refusals.append(refusal)
            code = self._known_refusals[refusal] = len(self.refusals)
        return code


class RememberedTrial:
    """Finds out who would have to go for one pod, as far as it is not remembered.

    nobody: what is said of nodes where there is nobody of lower priority.
    """

    def __init__(
        self, memory: RememberedEvictions, pod: Pod, one_node: NodeTrial, dry_run: DryRun, nobody: Refusal
    ) -> None:
        self.losses = memory.losses
        self._memory = memory
        self._one_node = one_node
        self._dry_run = dry_run
        self._nobody = nobody
        nominated_to = memory.snapshot.nominated.node_of(pod.uid)
        self._own = None if nominated_to is None else memory.snapshot.row_of.get(nominated_to)
        """The row of the node that the pod is nominated to: there it does not count against itself."""
        if self._own is not None:
            memory.is_known[self._own] = False

    def look_at(self, rows: NDArray[np.intp]) -> None:
        """See to it that the losses on some rows are known."""
        memory = self._memory
        new = rows[~memory.is_known[rows]]
        if not len(new):
            return
        if len(new) < _WORTH_COLUMNS:
            for row in new.tolist():
                self._look_at_one(row)
        else:
            snapshot = memory.snapshot
            found = Diagnosis(len(snapshot))
            self.losses.put_all(new, *self._dry_run(Nodes(snapshot, new), found))
            memory.put_all(new, found)
        if self._own is not None:
            memory.is_known[self._own] = False  # What was found out there holds for no other pod.

    def _look_at_one(self, row: int) -> None:
        memory = self._memory
        eviction = self._one_node.evict(
            memory.snapshot, row, self._nobody, is_known_node=bool(memory.admits[row])
        )
        victims = eviction.victims
        priorities = [victim.info.pod.priority for victim in victims]
        self.losses.put(row, priorities, [victim.started for victim in victims], eviction.broken)
        memory.codes[row] = 0 if eviction.refusal is None else memory.code(eviction.refusal)
        memory.admits[row] |= eviction.refusal is None
        memory.is_known[row] = True

    def victims_on(self, row: int) -> tuple[Pod, ...]:
        """Who has to go from a node that was looked at, the most important first."""
        eviction = self._one_node.evict(self._memory.snapshot, row, self._nobody, is_known_node=True)
        return tuple(victim.info.pod for victim in eviction.victims)

    def explain(self, nodes: Nodes, found: Diagnosis) -> None:
        """Take down why evicting does not help on nodes that were looked at."""
        found.refuse_cached(nodes, nodes.pick(self._memory.codes), self._memory.refusals)
