"""Members of a group that are alike: how many of them a node has decides what it is for the next one.

A group with a topology key is tried in every domain, and each of its members is decided for there: with a
thousand members and fifty domains, fifty thousand times. If the members are alike, and cached answers alone
decide about them, the answers for nodes that have none of them, one, two and so on are columns, made once for
all domains. A decision is then a search for the maximum, with the result of `Engine.decide`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.pod_table import PodInfo
from moorage.cluster.snapshot import Snapshot
from moorage.engine.engine import Engine
from moorage.framework.cache.plugin_answers import NodeScores, normalizes
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import NODE
from moorage.framework.interface.diagnosis import Diagnosis
from moorage.framework.interface.extension_points import Scores
from moorage.framework.interface.hypothetical_pods import HypotheticalPods
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import PluginError
from moorage.framework.runtime.framework import Framework
from moorage.framework.runtime.plan import ProfilePlan
from moorage.framework.runtime.plugin_call import PluginCall
from moorage.queue.equivalence_key import equivalence_key


class _Answers(NamedTuple):
    """The answers for all nodes, each with the same number of members on it: arrays of shape (nodes,).

    passes: whether another member may run there. totals: the scores that do not depend on other nodes.
    """

    passes: NDArray[np.bool_]
    totals: NDArray[np.int64]


class AlikeMembers:
    """What cached answers say about a member, by the number of members on each node.

    cycle: a member's cycle after its pre-filters.
    """

    def __init__(
        self,
        engine: Engine,
        framework: Framework,
        snapshot: Snapshot,
        pod: Pod,
        info: PodInfo,
        cycle: CycleState,
    ) -> None:
        plan = framework.plan(cycle)
        self.cycle = cycle
        self.best_of = engine.best_of
        self._framework = framework
        self._snapshot = snapshot
        self._pod = pod
        self._info = info
        self._filters, self._scores = plan.filters.by_pods, plan.scores.by_pods
        self._fixed = np.zeros(len(snapshot), np.int64)
        """The scores that depend neither on members nor on which nodes are compared."""
        self._normalizing: list[tuple[PluginCall, Scores]] = []
        """The plugins whose scores depend on which nodes are compared, and their scores before that."""
        for call in plan.scores.active:
            if call not in self._scores:
                self._add_scores(call)
        feasible = framework.filter(cycle, pod, Nodes(snapshot), Diagnosis(len(snapshot)))
        self._answers = [self._answers_of(Nodes(snapshot, feasible.row_numbers()))]

    def _add_scores(self, call: PluginCall) -> None:
        """Add the scores of a plugin that do not depend on members."""
        plugin, everywhere = self._framework.plugins[call.plugin], Nodes(self._snapshot)
        scores = NodeScores(NODE, call.score(self.cycle, self._pod, everywhere), normalizes(plugin))
        if scores.normalizes:
            scores.find_constant(call, plugin, self.cycle, self._pod, self._snapshot)
        if not scores.normalizes:
            self._fixed += call.weighted(plugin, self.cycle, self._pod, everywhere, scores.raw)
        elif scores.constant is not None:
            self._fixed += scores.constant
        else:
            self._normalizing.append((call, scores.raw))

    @classmethod
    def of(
        cls, engine: Engine, framework: Framework, snapshot: Snapshot, pods: Sequence[Pod]
    ) -> AlikeMembers | None:
        """The members of a group; None: they differ, or something else than cached answers decides."""
        try:
            return cls._of(engine, framework, snapshot, pods)
        except PluginError:
            return None  # The decision about a member says which.

    @classmethod
    def _of(
        cls, engine: Engine, framework: Framework, snapshot: Snapshot, pods: Sequence[Pod]
    ) -> AlikeMembers | None:
        if snapshot.nominated:
            return None
        first: tuple[bytes, ProfilePlan] | None = None
        for pod in pods:
            cycle = engine.cached_cycle(framework, pod, snapshot)
            if cycle is None or pod.status.nominated_node_name:
                return None
            assert cycle.equivalence_class is not None
            plan, info = framework.plan(cycle), cycle.equivalence_class.info(pod)
            if info is None:
                return None
            if first is None:
                if info.terms or not _is_by_node(plan, framework):
                    return None
                first = _key_without_labels(pod), plan
                members = cls(engine, framework, snapshot, pod, info, cycle)
            elif (_key_without_labels(pod), plan) != first:
                return None
        return None if first is None else members

    def in_placement(self, nodes: Nodes) -> MembersInTurn:
        """The decisions about one member after another in a placement that has none of them yet."""
        return MembersInTurn(self, nodes if len(nodes) < len(self._snapshot) else nodes.all)

    def with_members(self, count: int) -> _Answers:
        """The answers for nodes with some members on each."""
        while len(self._answers) <= count:
            rows = np.flatnonzero(self._answers[-1].passes)
            added = [self._info] * len(self._answers)
            nodes = Nodes(self._snapshot, rows, HypotheticalPods(self._snapshot, len(rows), on_each=added))
            self._answers.append(self._answers_of(self._filtered(nodes)))
        return self._answers[count]

    def normalised(self, nodes: Nodes) -> Scores:
        """The scores of nodes that depend on which nodes are compared."""
        total = np.zeros(len(nodes), np.int64)
        for call, raw in self._normalizing:
            plugin = self._framework.plugins[call.plugin]
            total += call.weighted(plugin, self.cycle, self._pod, nodes, nodes.pick(raw))
        return total

    def _answers_of(self, feasible: Nodes) -> _Answers:
        passes, totals = np.zeros(len(self._snapshot), np.bool_), self._fixed.copy()
        rows = feasible.row_numbers()
        passes[rows] = True
        totals[rows] += self._sum(self._scores, feasible)
        return _Answers(passes, totals)

    def _filtered(self, nodes: Nodes) -> Nodes:
        for call in self._filters:
            if not len(nodes):
                break
            result = call.filter(self.cycle, self._pod, nodes)
            if result.codes is not None:
                nodes = nodes.where(result.codes == 0)
        return nodes

    def _sum(self, calls: Sequence[PluginCall], nodes: Nodes) -> NDArray[np.int64]:
        total = np.zeros(len(nodes), np.int64)
        for call in calls if len(nodes) else ():
            plugin, scores = self._framework.plugins[call.plugin], call.score(self.cycle, self._pod, nodes)
            total += call.weighted(plugin, self.cycle, self._pod, nodes, scores)
        return total


class MembersInTurn:
    """The members of a group in one placement, each on its node before the next is decided for."""

    __slots__ = ("_counts", "_members", "_nodes", "_normalised", "_rows", "_totals")

    def __init__(self, members: AlikeMembers, nodes: Nodes) -> None:
        self._members = members
        self._counts: dict[int, int] = {}
        """The number of members by row, where there are any."""
        answers = members.with_members(0)
        feasible = nodes.where(nodes.pick(answers.passes))
        self._compare(feasible, feasible.pick(answers.totals))

    def _compare(self, nodes: Nodes, totals: NDArray[np.int64]) -> None:
        """Compare some nodes from now on. totals: the scores that do not depend on which nodes these are."""
        self._nodes, self._rows = nodes, nodes.row_numbers().tolist()
        self._normalised = self._members.normalised(nodes)
        self._totals = totals + self._normalised

    def next_node(self) -> str | None:
        """The node of the next member; None: no node passes the filters."""
        rows, totals = self._rows, self._totals
        if not rows:
            return None
        index = 0 if len(rows) == 1 else self._members.best_of(totals)
        row, name = rows[index], self._nodes.name(index)
        count = self._counts[row] = self._counts.get(row, 0) + 1
        answers = self._members.with_members(count)
        if answers.passes[row]:
            totals[index] = answers.totals[row] + self._normalised[index]
        else:
            others = np.delete(np.arange(len(rows)), index)
            self._compare(self._nodes.at(others), (totals - self._normalised)[others])
        return name


def _is_by_node(plan: ProfilePlan, framework: Framework) -> bool:
    """Whether members elsewhere change nothing for a node: neither what plugins skip, nor scores by pods."""
    own_skips = all(call.plugin not in plan.profile.outside for call in plan.profile.skipping)
    return own_skips and not any(normalizes(framework.plugins[call.plugin]) for call in plan.scores.by_pods)


def _key_without_labels(pod: Pod) -> bytes:
    """The key of a pod's equivalence class, but for labels: none of the plugins that run reads them."""
    unlabelled = replace(pod, metadata=replace(pod.metadata, labels={}))
    return equivalence_key(unlabelled, any_claims=True, any_group=True)
