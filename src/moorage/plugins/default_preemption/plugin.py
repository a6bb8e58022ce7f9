"""DefaultPreemption: make room for an important pod by evicting less important ones.

For every node that preemption could help, all pods of lower priority are removed; if the pod then fits, they
are reprieved one by one, the most important first, as long as the pod still fits. Those that cannot be
reprieved are the node's victims. Many nodes are evaluated at once: a round reprieves one pod on every node.

Where all filters depend on a node and its pods alone, results are cached for an equivalence class: only nodes
that have changed are evaluated again (`cache`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey, group_of
from moorage.client import kinds
from moorage.client.kinds import Kind
from moorage.client.permissions import Permission
from moorage.cluster.object_tables import Objects
from moorage.cluster.pod_table import PodInfo
from moorage.config.args import DefaultPreemptionArgs
from moorage.framework.extenders.extenders import ExtenderError
from moorage.framework.interface.cycle_state import CycleState, StateKey
from moorage.framework.interface.diagnosis import Diagnosis, Refusal
from moorage.framework.interface.effects import Effect, EvictPods, NominateNode
from moorage.framework.interface.events import Interest
from moorage.framework.interface.extension_points import PostFilterResult
from moorage.framework.interface.filter_result import FilterResult, Reason
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.pod_groups import (
    GroupDryRun,
    PodGroupInfo,
    PodGroupPostFilterResult,
)
from moorage.framework.interface.status import SUCCESS, Code, Status, unresolvable, unschedulable
from moorage.klog import Logger, ObjectRef, kobj
from moorage.plugins.default_preemption.budgets import Budgets
from moorage.plugins.default_preemption.cache import CachedDryRun, PreemptionCache
from moorage.plugins.default_preemption.candidate_ranking import find_candidates, pick_one_node
from moorage.plugins.default_preemption.dry_run import DryRun, UncachedDryRun
from moorage.plugins.default_preemption.extenders import remaining_candidates
from moorage.plugins.default_preemption.group_preemption import preempt_for_group
from moorage.plugins.default_preemption.single_node import SingleNodeDryRun
from moorage.plugins.default_preemption.unit_dry_run import UnitDryRun
from moorage.plugins.default_preemption.victims import PotentialVictims, Victims, find_victims

NEVER = "not eligible due to preemptionPolicy=Never."
STILL_TERMINATING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
PLACEMENT = "found a potential placement for pod on node {node}, preempting {count} victims"
NO_CANDIDATE = "no candidate node for preemption"
PREEMPTION_IN_PROGRESS = "waiting for the preemption for this pod to be finished"
GROUP_PREEMPTION_IN_PROGRESS = "waiting for the preemption for this pod group to be finished"

log = Logger(__name__)
_LOGGER = "PostFilter.DefaultPreemption"
"""Logger name."""


class DefaultPreemption:
    """Finds the best candidate node, and the victims on it."""

    name = "DefaultPreemption"
    preempts = True
    """Metrics of preemption are about plugins that have this, whatever their name."""
    watched_kinds: tuple[Kind, ...] = (kinds.POD_DISRUPTION_BUDGET,)
    write_permissions: Mapping[str, tuple[Permission, ...]] = {
        "post_filter": Permission.on(kinds.POD, "delete"),
        "pod_group_post_filter": Permission.on(kinds.POD, "delete"),
    }

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._reports_success = handle.version.reported_preemption
        self._preempting: set[str] = set()
        self._preempting_groups: set[GroupKey] = set()
        self._gate = unresolvable(PREEMPTION_IN_PROGRESS).by(self.name)
        self._group_gate = unresolvable(GROUP_PREEMPTION_IN_PROGRESS).by(self.name)
        self._budgets: Budgets | None = None
        self._kept: StateKey[PreemptionCache] = StateKey("kept for an equivalence class by DefaultPreemption")
        self._no_victims = Refusal(self.name, Reason((NO_VICTIMS,), Code.UNRESOLVABLE))

    def events(self) -> tuple[Interest, ...]:
        """None: the caller of `PostFilterResult.done` moves the pod back into the queue.

        Events that may help before that are those of the plugins that rejected the pod; checking the gate
        for every deleted victim would be useless.
        """
        return ()

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Gate a pod while its victims are being deleted, and a member while those of its group are."""
        if pod.uid in self._preempting:
            return self._gate
        if self._preempting_groups and (key := group_of(pod)) is not None:
            return (
                self._group_gate if self._handle.pod_groups.root_of(key) in self._preempting_groups else None
            )
        return None

    def post_filter(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> PostFilterResult | Status | Awaitable[PostFilterResult | Status]:
        """Nominate the best candidate and evict its victims, or return why there is no candidate.

        With extenders that support preemption, the result is awaited.
        """
        choices = self._choices(pod, nodes, None, pod.priority)
        if reason := _not_eligible(pod, nodes, diagnosis, choices):
            if log.v >= 5:
                message = "Pod is not eligible for preemption"
                log.info(5, message, logger=_LOGGER, pod=kobj(pod), reason=reason)
            return unschedulable(f"preemption: {reason}")
        helped = _helped(nodes, diagnosis)
        for potential in choices:
            dry_run = self._dry_run(cycle, pod, nodes, potential)
            candidates = self._candidates(pod, dry_run, helped)
            if len(candidates):
                break
        else:
            if log.v >= 2:
                message = "No preemption candidate is found; preemption is not helpful for scheduling"
                log.info(2, message, logger=_LOGGER, pod=kobj(pod))
            found = Diagnosis(len(nodes), left_out=unresolvable(NOT_HELPFUL))
            dry_run.explain(helped, found)
            return PostFilterResult(unschedulable(f"preemption: {found.message()}"), nominated_node="")
        if self._handle.extenders.preempting(pod):
            return self._ask_extenders(pod, dry_run, candidates, nodes)
        best = pick_one_node(dry_run.stats, candidates)
        violations = int(dry_run.stats.pdb_violations[best[0]])
        return self._prepare_candidate(pod, best.tolist(), dry_run.victims_on, nodes, violations)

    def potential_victims(
        self, pod: Pod, nodes: Nodes, group: PodGroupInfo | None
    ) -> NDArray[np.bool_] | None:
        """Which pods may be evicted for a pod, or for the group that it is one of; for derived plugins.

        Returns one entry per row of `nodes.snapshot.pods`, of pods any of which may be evicted together with
        all others; None: all pods of lower priority, for which results are cached.
        """
        return None

    def victim_choices(
        self, pod: Pod, nodes: Nodes, group: PodGroupInfo | None
    ) -> Sequence[NDArray[np.bool_] | None]:
        """Several answers of `potential_victims`, the preferred one first; for derived plugins.

        The next is used only where those before make no room. For a group, each adds to those before.
        """
        return (self.potential_victims(pod, nodes, group),)

    def evict(self, pod: Pod, row: int, victims: Sequence[PodInfo], nodes: Nodes) -> PostFilterResult:
        """Nominate a pod to the node of a row, and evict pods for it, anywhere; for derived plugins."""
        violations = sum(self.pdb_violations(victims, nodes))
        pods = tuple(info.pod for info in victims)
        return self._prepare_candidate(pod, [row], lambda row: pods, nodes, violations)

    def pdb_violations(self, victims: Sequence[PodInfo], nodes: Nodes) -> Sequence[bool]:
        """Which victims, the most important first, violate a PodDisruptionBudget; for derived plugins."""
        return self._budgets_of(nodes.objects).pdb_violations_on_node(victims)

    def priorities(self, nodes: Nodes) -> NDArray[np.int64]:
        """The priority of each pod, by row; of members of a group, that of the group, if it has one."""
        pods, groups = nodes.snapshot.pods, self._handle.pod_groups
        priorities: NDArray[np.int64] = pods.priority.values
        if groups.has_scheduled:
            members = [pod for pod in groups.all_scheduled() if pod.uid in pods]
            priorities = priorities.copy()
            priorities[pods.rows_of(pod.uid for pod in members)] = [*map(groups.priority_of, members)]
        return priorities

    def _choices(
        self, pod: Pod, nodes: Nodes, group: PodGroupInfo | None, priority: int
    ) -> list[PotentialVictims]:
        pods = nodes.snapshot.pods
        return [PotentialVictims(priority, pods, each) for each in self.victim_choices(pod, nodes, group)]

    async def pod_group_post_filter(
        self, cycle: CycleState, group: PodGroupInfo, dry_run: GroupDryRun
    ) -> PodGroupPostFilterResult:
        """Nominate nodes for the members of a group and evict the pods in the way, or return why not."""
        nodes = dry_run.nodes()
        budgets = self._budgets_of(nodes.objects)
        choices = self._choices(next(iter(group.all_pods())), nodes, group, group.priority)
        result = await preempt_for_group(group, dry_run, budgets, _preempted, self.name, choices)
        result = replace(result, status=_prefixed(result.status))
        if not result.effects:
            return result
        self._preempting_groups.add(group.key)
        return replace(result, done=lambda: self._preempting_groups.discard(group.key))

    async def _ask_extenders(
        self, pod: Pod, dry_run: DryRun, candidates: NDArray[np.intp], nodes: Nodes
    ) -> PostFilterResult | Status:
        """Nominate the best candidate that the extenders accept."""
        try:
            left = await remaining_candidates(
                self._handle.extenders, pod, dry_run, candidates, nodes.snapshot
            )
        except ExtenderError as error:
            return Status(Code.ERROR, (f"preemption: {error}",))
        if not left.victims:
            return unschedulable(f"preemption: {NO_CANDIDATE}")
        best = pick_one_node(left.stats, left.rows)
        violations = int(left.stats.pdb_violations[best[0]])
        return self._prepare_candidate(pod, best.tolist(), left.victims.__getitem__, nodes, violations)

    def _candidates(self, pod: Pod, dry_run: DryRun, nodes: Nodes) -> NDArray[np.intp]:
        """Enough candidates among the rows where preemption may help."""
        rows = nodes.row_numbers()
        if not len(rows):
            if log.v >= 3:
                message = "Preemption will not help schedule pod on any node"
                log.info(3, message, logger=_LOGGER, pod=kobj(pod))
            return rows
        offset, enough = self._handle.random.randrange(len(rows)), self._enough(len(rows))
        if log.v >= 5:
            self._log_dry_run(pod, nodes, offset, enough)
        found = find_candidates(dry_run, rows, enough, offset)
        if log.v >= 5:
            _log_candidates(pod, dry_run, found, nodes.snapshot.names)
        return found

    def _log_dry_run(self, pod: Pod, nodes: Nodes, offset: int, enough: int) -> None:
        numbers = {
            "potentialNodesNumber": len(nodes),
            "pdbsNumber": len(self._budgets_of(nodes.objects)),
            "offset": offset,
            "candidatesNumber": enough,
        }
        log.info(5, "Dry run the preemption", logger=_LOGGER, pod=kobj(pod), **numbers)

    def _enough(self, nodes: int) -> int:
        share = nodes * self._args.min_candidate_nodes_percentage // 100
        return min(max(share, self._args.min_candidate_nodes_absolute), nodes)

    def _dry_run(self, cycle: CycleState, pod: Pod, nodes: Nodes, potential: PotentialVictims) -> DryRun:
        """The dry run, in units where groups run."""
        dry_run = self._dry_run_of_pods(cycle, pod, nodes, potential)
        if not self._handle.pod_groups.has_scheduled:
            return dry_run
        budgets = self._budgets_of(nodes.objects)
        return UnitDryRun(
            dry_run, cycle, pod, nodes.snapshot, self._handle, budgets, self._no_victims, potential
        )

    def _dry_run_of_pods(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, potential: PotentialVictims
    ) -> DryRun:
        """The dry run of single pods, with cached results of the equivalence class if possible."""
        budgets = self._budgets_of(nodes.objects)
        select_victims_on_nodes = partial(self.select_victims_on_nodes, cycle, pod, potential)
        filters = None if potential.are_chosen else self._handle.single_node_filters(cycle)
        if filters is None or cycle.equivalence_class is None:
            return UncachedDryRun(nodes.snapshot, select_victims_on_nodes)
        memory = cycle.equivalence_class.read(self._kept)
        if memory is None or memory.source is not filters.source:
            memory = PreemptionCache(filters, budgets)
            cycle.equivalence_class.write(self._kept, memory)
        memory.catch_up(budgets)
        return CachedDryRun(
            memory,
            pod,
            SingleNodeDryRun(cycle, pod, filters, budgets),
            select_victims_on_nodes,
            self._no_victims,
        )

    def _budgets_of(self, objects: Objects) -> Budgets:
        if self._budgets is None or not self._budgets.hold(objects):
            self._budgets = Budgets(objects, self._budgets)
        return self._budgets

    def select_victims_on_nodes(
        self,
        cycle: CycleState,
        pod: Pod,
        potential: PotentialVictims,
        nodes: Nodes,
        diagnosis: Diagnosis,
    ) -> tuple[Victims, NDArray[np.bool_]]:
        """The pods on nodes that may be evicted, and which of them are victims.

        Nodes where preemption does not help have no victims; the reason is recorded in `diagnosis`.
        """
        victims = find_victims(potential, nodes, self._budgets_of(nodes.objects))
        having = victims.nodes_having()
        if not having.all():
            diagnosis.refuse(
                self.name, nodes, FilterResult((~having).view(np.int8), (self._no_victims.reason,))
            )
        removed = np.ones(len(victims.pods), bool)
        helped = self._passing(cycle, pod, victims, np.flatnonzero(having), removed, diagnosis)
        removed &= helped[victims.place]
        for turn in victims.reprieve_rounds():
            turn = turn[helped[victims.place[turn]]]
            removed[turn] = False
            places = victims.place[turn]
            fits = self._passing(cycle, pod, victims, places, removed, Diagnosis(len(nodes.snapshot)))
            removed[turn] = ~fits[places]
        return victims, removed

    def _passing(
        self,
        cycle: CycleState,
        pod: Pod,
        victims: Victims,
        places: NDArray[np.intp],
        removed: NDArray[np.bool_],
        diagnosis: Diagnosis,
    ) -> NDArray[np.bool_]:
        """Which nodes pass without the removed pods; only `places` are evaluated."""
        passing = np.zeros(len(victims.nodes.snapshot), bool)
        if len(places):
            passed = self._handle.run_filters(cycle, pod, victims.without(places, removed), diagnosis)
            passing[passed.row_numbers()] = True
        return passing[victims.nodes.row_numbers()]

    def _prepare_candidate(
        self,
        pod: Pod,
        best: list[int],
        victims_on: Callable[[int], tuple[Pod, ...]],
        nodes: Nodes,
        pdb_violations: int,
    ) -> PostFilterResult:
        names, node = nodes.snapshot.names, nodes.snapshot.names[best[0]]
        if log.v >= 2:
            message = "the target node for the preemption is determined"
            log.info(2, message, logger=_LOGGER, pod=kobj(pod), node=node)

        def tied() -> dict[str, tuple[Pod, ...]]:
            return {names[row]: victims_on(row) for row in best}

        # Nominations of pods of lower priority to the same node are cleared.
        waiting = nodes.snapshot.nominated.on(node)
        effects: list[Effect] = [
            NominateNode(info.pod, "") for info in waiting if info.pod.priority < pod.priority
        ]
        victims = victims_on(best[0])
        leaving = tuple(victim for victim in victims if not victim.terminating)
        if log.v >= 2:
            _log_terminating(pod, node, victims)
        status = SUCCESS
        if self._reports_success:
            status = Status(Code.SUCCESS, (f"preemption: {PLACEMENT.format(node=node, count=len(victims))}",))
        if not leaving:
            return PostFilterResult(status, nominated_node=node, effects=tuple(effects), tied=tied)
        terminating = len(victims) - len(leaving)
        effects.append(EvictPods(leaving, pod, node, self.name, terminating, pdb_violations=pdb_violations))
        self._preempting.add(pod.uid)
        return PostFilterResult(
            status,
            nominated_node=node,
            effects=tuple(effects),
            done=lambda: self._preempting.discard(pod.uid),
            tied=tied,
        )


def _prefixed(status: Status) -> Status:
    """A status with the words in which a group's status says whose it is."""
    return Status(status.code, (f"pod group preemption: {status.message}",)) if status.message else status


def _not_eligible(pod: Pod, nodes: Nodes, diagnosis: Diagnosis, choices: Sequence[PotentialVictims]) -> str:
    """Why a pod may not preempt others now; empty if it may."""
    if pod.spec.preemption_policy == "Never":
        return NEVER
    row = nodes.snapshot.row_of.get(pod.status.nominated_node_name)
    if row is None or diagnosis.code_of(row) is Code.UNRESOLVABLE:
        return ""
    infos = nodes.snapshot.pods_of(row).infos
    leaving = (info.pod for info in infos if any(potential.include(info) for potential in choices))
    return STILL_TERMINATING if any(_preempted(other) for other in leaving) else ""


def _preempted(pod: Pod) -> bool:
    """Whether a pod is terminating because a scheduler preempted it."""
    condition = next((c for c in pod.status.conditions if c.type == "DisruptionTarget"), None)
    if not pod.terminating or condition is None:
        return False
    return condition.status == "True" and condition.reason == "PreemptionByScheduler"


def _helped(nodes: Nodes, diagnosis: Diagnosis) -> Nodes:
    """The nodes that were rejected for a reason that preemption may resolve."""
    is_helped = [refusal.reason.code is Code.UNSCHEDULABLE for refusal in diagnosis.refusals]
    unrefused, *counts = diagnosis.counts()
    if not unrefused and all(helps for helps, count in zip(is_helped, counts, strict=False) if count):
        return nodes
    everywhere = diagnosis.pre_filter is not None and diagnosis.pre_filter.code is Code.UNSCHEDULABLE
    # The code of no refusal is -1, the last entry.
    return nodes.where(np.array([*is_helped, everywhere]).take(diagnosis.codes, mode="wrap"))


def _log_candidates(pod: Pod, dry_run: DryRun, rows: NDArray[np.intp], names: Sequence[str]) -> None:
    """The candidate nodes and the victims on them."""
    for row in rows.tolist():
        message, node = "Check the potential node for preemption", names[row]
        log.info(5, message, logger=_LOGGER, pod=kobj(pod), node=node)
        for victim in dry_run.victims_on(row):
            message = "Pod is a potential preemption victim on node"
            log.info(5, message, logger=_LOGGER, pod=kobj(victim), node=ObjectRef(node))


def _log_terminating(pod: Pod, node: str, victims: Sequence[Pod]) -> None:
    message = "Victim Pod is already being deleted, skipping the API call for it"
    for victim in victims:
        if victim.terminating:
            log.info(2, message, preemptor=kobj(pod), node=node, victim=kobj(victim))
