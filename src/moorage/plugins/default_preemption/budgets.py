"""PodDisruptionBudgets: which victims would violate one.

A violated budget lowers the rank of a candidate, but does not forbid the eviction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.selectors import Selector, SelectorError, label_selector
from moorage.api.workloads import PodDisruptionBudget
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_class import PodClass
from moorage.cluster.pod_table import PodInfo
from moorage.cluster.snapshot import Snapshot

_Selectors = dict[tuple[str, str], tuple[PodDisruptionBudget, Selector | None]]
"""Budgets by namespace and name, with the selector of each."""


class Budgets:
    """The budgets at one point in time, with values derived from them once."""

    def __init__(self, objects: Objects, older: Budgets | None = None) -> None:
        """older: earlier budgets, most of which are still valid."""
        table = objects.of(PodDisruptionBudget)
        self._objects = objects
        self._version = table.version
        self._by_name = {(budget.namespace, budget.name): budget for budget in table}
        self._parsed: _Selectors = (
            {}
            if older is None
            else {name: entry for name, entry in older._parsed.items() if self._by_name.get(name) is entry[0]}
        )
        self._in_namespace: dict[str, list[PodDisruptionBudget]] = {}
        for budget in table:
            self._in_namespace.setdefault(budget.namespace, []).append(budget)
        self._covering: dict[PodClass, tuple[PodDisruptionBudget, ...]] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def hold(self, objects: Objects) -> bool:
        """Whether these are still the current budgets of some objects."""
        return self._objects is objects and self._version == objects.of(PodDisruptionBudget).version

    def covering(self, pods: PodClass) -> tuple[PodDisruptionBudget, ...]:
        """The budgets that cover pods of a class."""
        budgets = self._covering.get(pods)
        if budgets is None:
            budgets = self._covering[pods] = tuple(
                budget
                for budget in self._in_namespace.get(pods.namespace, ())
                if (selector := self._selector(budget)) is not None and _covers(budget, selector, pods)
            )
        return budgets

    def _selector(self, budget: PodDisruptionBudget) -> Selector | None:
        """The selector of a budget, computed once; None: no pods."""
        name = (budget.namespace, budget.name)
        entry = self._parsed.get(name)
        if entry is None or entry[0] is not budget:
            entry = self._parsed[name] = (budget, _selector(budget))
        return entry[1]

    def pdb_violations_on_node(self, pods: Sequence[PodInfo]) -> list[bool]:
        """Which of the pods on one node violate a budget, if they are evicted in this order."""
        if not self._by_name:
            return [False] * len(pods)
        left: dict[int, int] = {}
        pdb_violations = []
        for info in pods:
            breaks = False
            for budget in self.covering(info.pod_class):
                if info.pod.name not in budget.status.disrupted_pods:
                    left[id(budget)] = left.get(id(budget), budget.status.disruptions_allowed) - 1
                    breaks |= left[id(budget)] < 0
            pdb_violations.append(breaks)
        return pdb_violations

    def pdb_violations(
        self, snapshot: Snapshot, places: NDArray[np.intp], pods: NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        """Which pods violate a budget, if on each node they are evicted in this order.

        places: each pod's node, in any numbers that grow. pods: by row in the snapshot's pod table.
        """
        table, infos = snapshot.pods, snapshot.pods.infos
        pdb_violations = np.zeros(len(pods), bool)
        codes = table.classes.codes[pods]
        covered: dict[int, tuple[PodDisruptionBudget, list[int]]] = {}
        for code in np.unique(codes).tolist() if self._by_name else ():
            each = table.class_codes.values[code]
            for budget in () if each is None else self.covering(each):
                covered.setdefault(id(budget), (budget, []))[1].append(code)
        for budget, classes in covered.values():
            matching = np.isin(codes, classes)
            for index in np.flatnonzero(matching).tolist() if budget.status.disrupted_pods else ():
                matching[index] = infos[pods[index]].pod.name not in budget.status.disrupted_pods
            pdb_violations |= matching & (_rank(places, matching) > budget.status.disruptions_allowed)
        return pdb_violations

    def differing(self, older: Budgets) -> Callable[[PodClass], bool] | None:
        """A predicate for classes of pods that had other budgets before; None: there is no difference."""
        names = self._by_name.keys() | older._by_name.keys()
        differing = [name for name in names if _differ(self._by_name.get(name), older._by_name.get(name))]
        changed = [
            (budget, selector)
            for budgets in (self, older)
            for name in differing
            if (budget := budgets._by_name.get(name)) is not None
            and (selector := budgets._selector(budget)) is not None
        ]
        if not changed:
            return None
        return lambda pods: any(_covers(budget, selector, pods) for budget, selector in changed)


def _differ(budget: PodDisruptionBudget | None, older: PodDisruptionBudget | None) -> bool:
    if budget is None or older is None:
        return budget is not older
    return budget is not older and _read(budget) != _read(older)


def _read(budget: PodDisruptionBudget) -> tuple[object, ...]:
    """What preemption reads of a budget."""
    return budget.spec, budget.status.disruptions_allowed, budget.status.disrupted_pods


def _selector(budget: PodDisruptionBudget) -> Selector | None:
    """The selector of a budget; None: it is empty or invalid, and matches no pods."""
    try:
        selector = label_selector(budget.spec.selector)
    except SelectorError:
        return None
    return None if selector.empty or selector.requirements is None else selector


def _covers(budget: PodDisruptionBudget, selector: Selector, pods: PodClass) -> bool:
    return pods.namespace == budget.namespace and bool(pods.labels) and selector.matches(dict(pods.labels))


def _rank(places: NDArray[np.intp], matching: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rank of each pod among the pods of its node that a budget covers, from 1."""
    running = np.cumsum(matching)
    before_node = np.concatenate(([0], running))[np.searchsorted(places, places)]
    return running - before_node
