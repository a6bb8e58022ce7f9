"""Victims of preemption on many nodes at once: who can go, in what order, and whose loss is smallest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.api.selectors import Selector, SelectorError, label_selector
from moorage.api.workloads import PodDisruptionBudget
from moorage.cluster.objects import Objects
from moorage.cluster.pods import NOT_STARTED, PodClass
from moorage.framework.changes import Changes
from moorage.framework.nodes import Nodes

_PRIORITY_OFFSET = 1 << 31
"""Makes every priority positive, so that more victims never sum up to less."""


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
        changes = Changes(
            self.nodes.snapshot, len(places), renumbered[self.place[leaving]], self.pods[leaving]
        )
        return Nodes(chosen.snapshot, chosen.row_numbers(), changes)


def find_victims(pod: Pod, nodes: Nodes) -> Victims:
    """All pods of lower priority: budget breakers first, then by importance, which is the order of mercy."""
    table = nodes.snapshot.pods
    place_of = np.full(len(nodes.snapshot), -1, np.intp)
    place_of[nodes.row_numbers()] = np.arange(len(nodes))
    places = place_of[table.node_rows]
    pods = np.flatnonzero((places >= 0) & (table.priority.values < pod.priority))
    pods = pods[np.lexsort((*_importance(nodes, pods), places[pods]))]
    violates = _breaks_budget(nodes, places[pods], pods)
    mercy = np.lexsort((~violates, places[pods]))
    return Victims(nodes, places[pods][mercy], pods[mercy], violates[mercy])


def _importance(nodes: Nodes, pods: NDArray[np.intp]) -> tuple[NDArray[np.int64], ...]:
    """Sort keys that put the most important pods first: by priority, then by who started first.

    A pod that has not started counts as started now. Of two such pods kube-scheduler takes the one that is
    later in its node's list for the older, because it asks for the time twice.
    """
    snapshot = nodes.snapshot
    started = snapshot.pods.started.values[pods]
    tie = np.zeros(len(pods), np.int64)
    waiting = np.flatnonzero(started == NOT_STARTED)
    tie[waiting] = -snapshot.places_on_nodes(pods[waiting])
    return tie, started, -snapshot.pods.priority.values[pods]


def _breaks_budget(nodes: Nodes, places: NDArray[np.intp], pods: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which pods are one too many for some disruption budget; pods come by node and importance."""
    classes = nodes.snapshot.pods.classes
    violates = np.zeros(len(pods), bool)
    for budget, selector in _budgets(nodes.objects):

        def covered(
            each: PodClass, budget: PodDisruptionBudget = budget, selector: Selector = selector
        ) -> bool:
            return (
                each.namespace == budget.namespace
                and bool(each.labels)
                and selector.matches(dict(each.labels))
            )

        meant = classes.vocabulary.judge(covered)[classes.codes[pods]]
        for index in np.flatnonzero(meant).tolist() if budget.status.disrupted_pods else ():
            meant[index] = nodes.snapshot.pods.infos[pods[index]].pod.name not in budget.status.disrupted_pods
        violates |= meant & (_rank(places, meant) > budget.status.disruptions_allowed)
    return violates


def _budgets(objects: Objects) -> Iterator[tuple[PodDisruptionBudget, Selector]]:
    """The budgets that mean some pods: an empty selector means none."""
    for budget in objects.of(PodDisruptionBudget):
        try:
            selector = label_selector(budget.spec.selector)
        except SelectorError:
            continue
        if not selector.empty and selector.requirements is not None:
            yield budget, selector


def _rank(places: NDArray[np.intp], meant: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The how-manieth of its node's meant pods each pod is, from 1."""
    running = np.cumsum(meant)
    before_node = np.concatenate(([0], running))[np.searchsorted(places, places)]
    return running - before_node


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node and the pods to evict there, the most important first."""

    node: str
    victims: tuple[Pod, ...]


def best_places(victims: Victims, gone: NDArray[np.bool_], enough: int, random: Random) -> NDArray[np.intp]:
    """The nodes where evicting the pods that are `gone` hurts least; none if nobody is.

    Compared in turn: budgets broken, the highest priority lost, the sum of priorities, the number of pods,
    and how late the most important victims started. Only the first `enough` candidates are compared,
    counted from a random node on.
    """
    count = len(victims.nodes)
    place, priority, started = victims.place[gone], victims.priority[gone], victims.started[gone]
    lost = np.bincount(place, minlength=count)
    broken = np.bincount(place[victims.violates[gone]], minlength=count)
    candidates = _first_candidates(lost > 0, broken, enough, random)
    if not len(candidates):
        return candidates
    highest = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(highest, place, priority)
    total = np.bincount(place, priority + _PRIORITY_OFFSET, minlength=count)
    most_important = priority == highest[place]
    earliest = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(earliest, place[most_important], started[most_important])
    for measure in (broken, highest, total, lost, -earliest):
        values = measure[candidates]
        candidates = candidates[values == values.min()]
    return candidates


def candidate(victims: Victims, gone: NDArray[np.bool_], place: int) -> Candidate:
    """A node with the pods that are gone there."""
    infos = victims.nodes.snapshot.pods.infos
    here = np.flatnonzero(gone & (victims.place == place))
    order = here[np.lexsort(_importance(victims.nodes, victims.pods[here]))]
    return Candidate(
        victims.nodes.at(np.array([place])).names[0],
        tuple(infos[pod].pod for pod in victims.pods[order].tolist()),
    )


def _first_candidates(
    is_candidate: NDArray[np.bool_], broken: NDArray[np.int64], enough: int, random: Random
) -> NDArray[np.intp]:
    """Candidates from a random node on, until there are enough and one of them breaks no budget."""
    count = len(is_candidate)
    if not count:
        return np.zeros(0, np.intp)
    rotated = np.roll(np.arange(count), -random.randrange(count))
    found = rotated[is_candidate[rotated]]
    harmless = np.cumsum(broken[found] == 0)
    done = np.flatnonzero((harmless > 0) & (np.arange(1, len(found) + 1) >= enough))
    return found[: int(done[0]) + 1] if len(done) else found
