"""Victims of preemption on many nodes at once: who can go, and in what order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.pods import NOT_STARTED
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.common.budgets import Budgets


@dataclass(frozen=True, slots=True, eq=False)
class Victims:
    """Pods that could go, node by node. All arrays have one entry per pod."""

    nodes: Nodes
    place: NDArray[np.intp]
    """The pod's node, by its index in `nodes`."""
    pods: NDArray[np.intp]
    """The pod, by its row in the snapshot's pod table."""
    violates: NDArray[np.bool_]
    """Whether evicting the pod, after all more important ones, breaks a disruption budget."""

    @property
    def priority(self) -> NDArray[np.int64]:
        """The pods' priorities."""
        return self.nodes.snapshot.pods.priority.values[self.pods]

    @property
    def started(self) -> NDArray[np.int64]:
        """When the pods started; pods that have not started yet come last."""
        return self.nodes.snapshot.pods.started.values[self.pods]

    def nodes_having(self) -> NDArray[np.bool_]:
        """Which nodes have any. Shape (nodes,)."""
        return np.bincount(self.place, minlength=len(self.nodes)) > 0

    def turns(self) -> Iterator[NDArray[np.intp]]:
        """The pods in rounds: the first of every node, the second of every node, and so on."""
        first = np.searchsorted(self.place, self.place)
        rank = np.arange(len(self.place)) - first
        order = np.argsort(rank, kind="stable")
        return iter(np.split(order, np.cumsum(np.bincount(rank))[:-1])) if len(order) else iter(())

    def without(self, places: NDArray[np.intp], gone: NDArray[np.bool_]) -> Nodes:
        """Some nodes as they would be without the pods that are `gone` (one entry per pod)."""
        renumbered = np.full(len(self.nodes), -1, np.intp)
        renumbered[places] = np.arange(len(places))
        leaving = gone & (renumbered[self.place] >= 0)
        chosen = self.nodes.at(places)
        changes = HypotheticalPods(
            self.nodes.snapshot, len(places), renumbered[self.place[leaving]], self.pods[leaving]
        )
        return Nodes(chosen.snapshot, chosen.row_numbers(), changes)

    def gone_from(self, row: int, gone: NDArray[np.bool_]) -> tuple[Pod, ...] | None:
        """The pods that are gone from the node in a row, the most important first; None: it is not here."""
        found = np.flatnonzero(self.nodes.row_numbers() == row)
        if not len(found):
            return None
        here = self.pods[gone & (self.place == found[0])]
        infos = self.nodes.snapshot.pods.infos
        order = np.lexsort(importance(self.nodes, here))
        return tuple(infos[pod].pod for pod in here[order].tolist())


def find_victims(pod: Pod, nodes: Nodes, budgets: Budgets) -> Victims:
    """All pods of lower priority: budget breakers first, then by importance, which is the order of mercy."""
    table = nodes.snapshot.pods
    place_of = np.full(len(nodes.snapshot), -1, np.intp)
    place_of[nodes.row_numbers()] = np.arange(len(nodes))
    places = place_of[table.node_rows]
    pods = np.flatnonzero((places >= 0) & (table.priority.values < pod.priority))
    pods = pods[np.lexsort((*importance(nodes, pods), places[pods]))]
    violates = budgets.broken(nodes.snapshot, places[pods], pods)
    mercy = np.lexsort((~violates, places[pods]))
    return Victims(nodes, places[pods][mercy], pods[mercy], violates[mercy])


def importance(nodes: Nodes, pods: NDArray[np.intp]) -> tuple[NDArray[np.int64], ...]:
    """Sort keys that put the most important pods first: by priority, then by who started first.

    Of two that started at once, the one that is earlier in its node's list comes first. A pod that has not
    started counts as started now; of two such pods kube-scheduler takes the one that is later in the list
    for the older, because it asks for the time twice.
    """
    table = nodes.snapshot.pods
    started, priority = table.started.values[pods], table.priority.values[pods]
    tie = np.zeros(len(pods), np.int64)
    equals = _having_equals(table.node_rows[pods], priority, started)
    tie[equals] = nodes.snapshot.places_on_nodes(pods[equals])
    return np.where(started == NOT_STARTED, -tie, tie), started, -priority


def _having_equals(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries are equal to some other one in all columns."""
    order = np.lexsort(columns)
    is_as_before = np.ones(max(len(order) - 1, 0), bool)
    for column in columns:
        ordered = column[order]
        is_as_before &= ordered[1:] == ordered[:-1]
    has_equals = np.zeros(len(order), bool)
    has_equals[order[1:][is_as_before]] = True
    has_equals[order[:-1][is_as_before]] = True
    return has_equals
