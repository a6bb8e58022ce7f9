"""Nodes that could be emptied now, and the moves that do it, in an order that keeps disruption budgets.

Nodes are tried one after another, those with the fewest pods to move first. Then all nodes that could be
emptied are cordoned together, and emptied from the start: so no pod moves to a node that is emptied later. If
pods would be pending then, the last of the nodes stays, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from moorage.api.base import Object
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.planning.budgets import DisruptionBudgets
from moorage.planning.drain import Draining
from moorage.planning.evictions import (
    NOTHING_LOST,
    Permissions,
    consolidation_obstacle,
    goes_with_its_node,
)
from moorage.planning.results import FORMAT, Interrupted, Move, Progress, Struct, Usage, no_progress
from moorage.planning.trial import Trial
from moorage.simulation.settings import Settings
from moorage.simulation.shapes import price_of

SCALE_DOWN_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
"""Annotation of a node: whether an autoscaler must leave it alone."""
CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"


class EmptiedNode(Struct, kw_only=True):
    """A node that can be emptied, and the moves that do it, in this order."""

    node: str
    price_per_hour: float
    moves: list[Move]


class KeptNode(Struct, kw_only=True):
    """A node that stays, and why."""

    node: str
    reason: str


class Consolidation(Struct, kw_only=True):
    """The nodes that can be emptied one after another; all of them are cordoned before the first move."""

    api_version: str = FORMAT
    kind: str = "ConsolidationPlan"
    complete: bool
    """False if it was interrupted: not all nodes were tried."""
    emptied: list[EmptiedNode]
    kept: list[KeptNode]
    saving_per_hour: float
    cost_per_hour: float
    """The price of all nodes before."""
    pending_before: int
    usage: list[Usage]
    """What is requested of the nodes that are left, in the end."""


def plan_consolidation(
    objects: Iterable[Object],
    settings: Settings,
    permitted: Permissions = NOTHING_LOST,
    progress: Progress = no_progress,
) -> Consolidation:
    """Which nodes could be emptied now; every move is the engine's decision, and keeps all budgets."""
    objects = list(objects)
    trial = Trial(objects, settings)
    pending_before = trial.settle()
    attempt = _Attempt(trial, DisruptionBudgets(objects), permitted)
    candidates, kept = attempt.candidates()
    chosen, complete = attempt.choose(candidates, kept, progress)
    plan = Consolidation(
        complete=complete,
        emptied=[],
        kept=kept,
        saving_per_hour=0.0,
        cost_per_hour=sum(price_of(node) for node in trial.nodes()),
        pending_before=pending_before,
        usage=[],
    )
    attempt.verify(chosen, plan)
    plan.kept.sort(key=lambda each: each.node)
    plan.saving_per_hour = sum(each.price_per_hour for each in plan.emptied)
    plan.usage = trial.usage()
    return plan


class _Attempt:
    """Empties nodes in a trial."""

    def __init__(self, trial: Trial, budgets: DisruptionBudgets, permitted: Permissions) -> None:
        self._trial = trial
        self._budgets = budgets
        self._permitted = permitted

    def candidates(self) -> tuple[list[Node], list[KeptNode]]:
        """The nodes that may be emptied, in the order in which they are tried, and the others."""
        candidates, kept = list[Node](), list[KeptNode]()
        pods = {node.name: self._trial.pods_on(node) for node in self._trial.nodes()}
        for node in self._trial.nodes():
            if why := _obstacle(node, pods[node.name], self._permitted):
                kept.append(KeptNode(node=node.name, reason=why))
            else:
                candidates.append(node)
        moving = {name: sum(not goes_with_its_node(pod) for pod in some) for name, some in pods.items()}
        candidates.sort(key=lambda node: (moving[node.name], -price_of(node), node.name))
        return candidates, kept

    def choose(
        self, candidates: Sequence[Node], kept: list[KeptNode], progress: Progress
    ) -> tuple[list[Node], bool]:
        """The nodes that can be emptied one after another, and whether all were tried; nothing changes."""
        mark, numbers = self._trial.mark(), self._budgets.numbers()
        chosen, complete = list[Node](), False
        with suppress(Interrupted):
            for number, node in enumerate(candidates):
                before, budgets = self._trial.mark(), self._budgets.numbers()
                self._trial.cordon(node)
                _, why = self._empty(node)
                if why:
                    self._trial.undo_to(before)
                    self._budgets.restore(budgets)
                    kept.append(KeptNode(node=node.name, reason=why))
                else:
                    chosen.append(node)
                progress(number + 1, len(candidates))
            complete = True
        self._trial.undo_to(mark)
        self._budgets.restore(numbers)
        return chosen, complete

    def verify(self, chosen: list[Node], plan: Consolidation) -> None:
        """Empty nodes that are cordoned together, in this order; fewer of them while that is impossible."""
        while chosen:
            mark, numbers = self._trial.mark(), self._budgets.numbers()
            for node in chosen:
                self._trial.cordon(node)
            plan.emptied = []
            for node in chosen:
                moves, why = self._empty(node)
                if why:
                    break
                plan.emptied.append(EmptiedNode(node=node.name, price_per_hour=price_of(node), moves=moves))
            else:
                return
            self._trial.undo_to(mark)
            self._budgets.restore(numbers)
            plan.emptied = []
            last = chosen.pop()
            plan.kept.append(KeptNode(node=last.name, reason=f"not beside the others: {why}"))

    def _empty(self, node: Node) -> tuple[list[Move], str]:
        """Move the pods of a cordoned node, and remove it; or why that is not possible."""
        pods = self._trial.pods_on(node)
        moving = [pod for pod in pods if not goes_with_its_node(pod)]
        draining = Draining(self._trial, self._budgets)
        refused = draining.evict_all(moving)
        if refused:
            pod, (reason, _) = refused[0]
            return [], f"{pod.key}: {reason}"
        for waiting in draining.pending():
            return [], f"{waiting.namespace}/{waiting.name} would be pending: {waiting.message}"
        for move in draining.moves:
            if move.node == node.name:
                return [], f"{move.namespace}/{move.name} tolerates that the node is cordoned"
        for pod in pods:
            if goes_with_its_node(pod):
                self._trial.evict(pod)
        self._trial.remove_node(node)
        return draining.moves, ""


def _obstacle(node: Node, pods: Sequence[Pod], permitted: Permissions) -> str:
    """Why a node is not to be emptied; empty if it may be."""
    if node.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true":
        return f"{SCALE_DOWN_DISABLED} is true"
    if CONTROL_PLANE in node.labels:
        return "it is of the control plane"
    for pod in pods:
        if not goes_with_its_node(pod) and (why := consolidation_obstacle(pod, permitted)):
            return f"{pod.key}: {why}"
    return ""
