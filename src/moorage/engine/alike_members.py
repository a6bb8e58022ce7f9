"""Members of a group that are alike: how many of them a node has decides what it is for the next one.

A group with a topology key is tried in every domain, and each of its members is decided for there: with a
thousand members and fifty domains, fifty thousand times. If the members are alike, and cached answers alone
decide about them, the answers for nodes that have none of them, one, two and so on are columns, made once for
all domains, and for the next group of the same template again where nodes changed. A decision is then a
search for the maximum, with the result of `Engine.decide`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.cluster.pod_table import PodInfo
from moorage.cluster.snapshot import Snapshot
from moorage.engine.engine import Engine
from moorage.framework.cache.equivalence_classes import EquivalenceClass
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

_NEVER: Final = -1
"""Log position before the first write."""
_MAX_KEPT_ROWS: Final = 1 << 21
"""Maximum number of rows of all answers that are kept for the next group; 9 bytes each."""


class _Answers:
    """The answers for all nodes, each with the same number of members on it: arrays of shape (nodes,).

    passes: whether another member may run there. totals: the scores that do not depend on other nodes, where
    it passes. seen: the position in the snapshot's log of changes up to which they are true.
    """

    __slots__ = ("passes", "seen", "totals")

    def __init__(self, rows: int) -> None:
        self.passes = np.zeros(rows, np.bool_)
        self.totals = np.zeros(rows, np.int64)
        self.seen = _NEVER


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
        self._made_for = _conditions(framework, snapshot, cycle)
        self._filters, self._scores = plan.filters.by_pods, plan.scores.by_pods
        self._fixed = np.zeros(len(snapshot), np.int64)
        """The scores that depend neither on members nor on which nodes are compared."""
        self._normalizing: list[tuple[PluginCall, Scores]] = []
        """The plugins whose scores depend on which nodes are compared, and their scores before that."""
        for call in plan.scores.active:
            if call not in self._scores:
                self._add_scores(call)
        self._answers: list[_Answers] = []
        self._current = 0
        """The number of answers that are up to date."""

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
        known: set[EquivalenceClass] = set()
        first: tuple[bytes, ProfilePlan] | None = None
        for pod in pods:
            like = engine.equivalence_class(pod, snapshot)
            info = None if like is None else like.info(pod)
            if like is None or info is None or pod.status.nominated_node_name:
                return None
            if like in known:
                continue
            known.add(like)
            cycle = engine.cached_cycle(framework, pod, snapshot)
            if cycle is None:
                return None
            plan = framework.plan(cycle)
            if first is None:
                if info.terms or not _is_by_node(plan, framework):
                    return None
                first = _key_without_labels(pod), plan
                members = snapshot.derived(_LatestMembers).of(engine, framework, snapshot, pod, info, cycle)
            elif (_key_without_labels(pod), plan) != first:
                return None
        if first is None:
            return None
        members.with_members(0)
        return members

    def renew(self, engine: Engine, framework: Framework, pod: Pod, cycle: CycleState) -> bool:
        """Use kept answers for the members of another group; false: they are not valid for those."""
        if self._made_for != _conditions(framework, self._snapshot, cycle):
            return False
        self.best_of = engine.best_of
        self._pod, self.cycle = pod, cycle
        del self._answers[max(2, _MAX_KEPT_ROWS // len(self._snapshot)) :]
        self._current = 0
        return True

    def in_placement(self, nodes: Nodes) -> MembersInTurn:
        """The decisions about one member after another in a placement that has none of them yet."""
        return MembersInTurn(self, nodes if len(nodes) < len(self._snapshot) else nodes.all)

    def with_members(self, count: int) -> _Answers:
        """The answers for nodes with some members on each."""
        while self._current <= count:
            if self._current == len(self._answers):
                self._answers.append(_Answers(len(self._snapshot)))
            self._catch_up(self._current)
            self._current += 1
        return self._answers[count]

    def _catch_up(self, count: int) -> None:
        """Bring the answers for some number of members up to date, after those for fewer of them."""
        answers, log = self._answers[count], self._snapshot.changes
        if answers.seen == log.position:
            return
        changed = None if answers.seen == _NEVER else log.array_since(answers.seen, len(self._snapshot))
        rows = np.arange(len(self._snapshot)) if changed is None else changed
        feasible = self._passing(rows, count)
        here, totals = feasible.row_numbers(), self._sum(self._scores, feasible)
        answers.passes[rows] = False
        answers.passes[here] = True
        answers.totals[here] = self._fixed[here] + totals
        answers.seen = log.position

    def _passing(self, rows: NDArray[np.intp], count: int) -> Nodes:
        """Those of some nodes where a member may run, beside some number of others."""
        snapshot = self._snapshot
        if count:
            rows = rows[self._answers[count - 1].passes[rows]]
            added = HypotheticalPods(snapshot, len(rows), on_each=[self._info] * count)
            return self._filtered(Nodes(snapshot, rows, added))
        some = Nodes(snapshot) if len(rows) == len(snapshot) else Nodes(snapshot, rows)
        passing = self._framework.filter(self.cycle, self._pod, some, Diagnosis(len(snapshot)))
        return Nodes(snapshot, passing.row_numbers())

    def normalised(self, nodes: Nodes) -> Scores | None:
        """The scores of nodes that depend on which nodes are compared; None: there are none."""
        if not self._normalizing:
            return None
        total = np.zeros(len(nodes), np.int64)
        for call, raw in self._normalizing:
            plugin = self._framework.plugins[call.plugin]
            total += call.weighted(plugin, self.cycle, self._pod, nodes, nodes.pick(raw))
        return total

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


class _LatestMembers:
    """The members that were alike last: groups of one template come one after another.

    Between two of them hardly any node changes.
    """

    __slots__ = ("_members",)

    def __init__(self) -> None:
        self._members: AlikeMembers | None = None

    def of(
        self,
        engine: Engine,
        framework: Framework,
        snapshot: Snapshot,
        pod: Pod,
        info: PodInfo,
        cycle: CycleState,
    ) -> AlikeMembers:
        """The answers for a group's members: those of the last group, if they are valid for this one."""
        members = self._members
        if members is None or not members.renew(engine, framework, pod, cycle):
            members = self._members = AlikeMembers(engine, framework, snapshot, pod, info, cycle)
        return members


class MembersInTurn:
    """The members of a group in one placement, each on its node before the next is decided for."""

    __slots__ = ("_counts", "_members", "_nodes", "_normalised", "_rows", "_totals")

    def __init__(self, members: AlikeMembers, nodes: Nodes) -> None:
        self._members = members
        self._counts: dict[int, int] = {}
        """The number of members by row, where there are any."""
        answers = members.with_members(0)
        passes = nodes.pick(answers.passes)
        feasible = nodes if passes.all() else nodes.where(passes)
        self._compare(feasible, feasible.pick(answers.totals))

    def _compare(self, nodes: Nodes, totals: NDArray[np.int64]) -> None:
        """Compare some nodes from now on. totals: the scores that do not depend on which nodes these are."""
        self._nodes, self._rows = nodes, nodes.row_numbers().tolist()
        self._normalised = self._members.normalised(nodes)
        self._totals = totals.copy() if self._normalised is None else totals + self._normalised

    def next_node(self) -> str | None:
        """The node of the next member; None: no node passes the filters."""
        rows, totals = self._rows, self._totals
        if not rows:
            return None
        index = 0 if len(rows) == 1 else self._members.best_of(totals)
        row, name = rows[index], self._nodes.name(index)
        count = self._counts[row] = self._counts.get(row, 0) + 1
        answers, normalised = self._members.with_members(count), self._normalised
        if not answers.passes.item(row):
            others = np.delete(np.arange(len(rows)), index)
            plain = totals if normalised is None else totals - normalised
            self._compare(self._nodes.at(others), plain[others])
        elif normalised is None:
            totals[index] = answers.totals.item(row)
        else:
            totals[index] = answers.totals.item(row) + normalised.item(index)
        return name


def _conditions(framework: Framework, snapshot: Snapshot, cycle: CycleState) -> tuple[object, ...]:
    """What answers depend on, besides the rows of the snapshot's log of changes."""
    return (
        framework,
        cycle.results,
        framework.plan(cycle),
        snapshot.node_changes.position,
        snapshot.images.version,
    )


def _is_by_node(plan: ProfilePlan, framework: Framework) -> bool:
    """Whether members elsewhere change nothing for a node: neither what plugins skip, nor scores by pods."""
    own_skips = all(call.plugin not in plan.profile.outside for call in plan.profile.skipping)
    return own_skips and not any(normalizes(framework.plugins[call.plugin]) for call in plan.scores.by_pods)


def _key_without_labels(pod: Pod) -> bytes:
    """The key of a pod's equivalence class, but for labels: none of the plugins that run reads them."""
    unlabelled = replace(pod, metadata=replace(pod.metadata, labels={}))
    return equivalence_key(unlabelled, any_claims=True, any_group=True)
