"""Capacity: PreFilter and Filter by elastic quota, and DefaultPreemption that knows quotas.

It runs in place of DefaultPreemption. A pod within its quota passes by one look at sums. One that is refused
is told which limit is in its way; preemption then filters nodes by what the victims there would free.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage import (
    ALL,
    SKIP,
    Action,
    Code,
    CycleState,
    DefaultPreemption,
    DefaultPreemptionArgs,
    Diagnosis,
    Effect,
    EvictPods,
    FilterResult,
    GroupDryRun,
    Handle,
    Interest,
    Nodes,
    Objects,
    Permission,
    Pod,
    PodGroupInfo,
    PodGroupPostFilterResult,
    PodGroups,
    PodInfo,
    PostFilterResult,
    Reason,
    Resource,
    StateKey,
    Status,
    kinds,
    on,
    unresolvable,
    unschedulable,
)
from moorage.optional_plugins.capacity.across_nodes import AcrossNodes
from moorage.optional_plugins.capacity.columns import NO_QUOTA, PodColumns, below
from moorage.optional_plugins.capacity.elastic_quota import ELASTIC_QUOTA, ElasticQuota, terms_of
from moorage.optional_plugins.capacity.quota_tree import Excess
from moorage.optional_plugins.capacity.requests import request_of
from moorage.optional_plugins.capacity.status_writer import StatusWriter
from moorage.optional_plugins.capacity.usage import Usage
from moorage.optional_plugins.capacity.victims import Reclaim

_FIRST_SYSTEM_PRIORITY: Final = 1_000_000_001
"""The lowest priority that users cannot give: pods without a quota evict others from here on."""


class CapacityArgs(DefaultPreemptionArgs):
    """The number of candidate nodes that preemption evaluates, as for DefaultPreemption."""

    def __post_init__(self) -> None:
        self.check()


class Refusal(NamedTuple):
    """Why a quota refuses a pod: all limits that it would exceed, and the status that says so."""

    excesses: tuple[Excess, ...]
    status: Status


_REFUSAL: Final[StateKey[Refusal]] = StateKey("why Capacity refuses a pod")
_REQUEST: Final[StateKey[Mapping[str, int]]] = StateKey("what a pod counts with in Capacity")


class Capacity(DefaultPreemption):
    """Elastic quotas: guarantees, limits, borrowing, and preemption that gives back what was borrowed."""

    name = "Capacity"
    replaces = {"post_filter": ("DefaultPreemption", "PreemptionToleration")}
    watched_kinds = (*DefaultPreemption.watched_kinds, ELASTIC_QUOTA, kinds.RESOURCE_CLAIM)
    write_permissions = {
        **DefaultPreemption.write_permissions,
        "pre_filter": Permission.on(ELASTIC_QUOTA, "patch", part="status"),
    }

    def __init__(self, args: CapacityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.usage = Usage()
        """What is used of each quota, as of the last cycle."""
        self._columns = PodColumns()
        self._evicted: set[str] = set()
        """The uids of victims that are about to be deleted."""
        self._status_writer = StatusWriter(handle, self.usage)
        refused = "Number of attempts that a limit of an ElasticQuota refused."
        self._refused = handle.metrics.counter(
            "moorage_capacity_refusals_total", refused, ("quota", "resource")
        )
        evicted = "Number of pods of an ElasticQuota that were evicted for other pods."
        self._evictions = handle.metrics.counter("moorage_capacity_evictions_total", evicted, ("quota",))

    # Quota

    def pre_filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Status | None:
        """Refuse a pod that would exceed a limit of its quotas."""
        refusal = self._refusal(cycle, pod, nodes)
        if refusal is None:
            return SKIP
        cycle.write(_REFUSAL, refusal)
        first = refusal.excesses[0]
        self._refused.labels(first.quota.key, first.resource).inc()
        return refusal.status

    def _refusal(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> Refusal | None:
        usage = self.usage
        usage.follow(nodes)
        path = usage.tree.path(pod.namespace)
        if not path:
            return None
        if self._handle.is_acting:
            self._status_writer.changes()
        request = _request(cycle, pod, nodes.objects)
        excesses = tuple(usage.tree.excess(path, request, usage.with_nominated(pod, nodes)))
        if not excesses:
            return None
        reasons = dict.fromkeys(map(str, excesses))
        refuse = unresolvable if any(each.is_for_ever for each in excesses) else unschedulable
        return Refusal(excesses, refuse(*reasons))

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        """Reject nodes where the pods that are assumed to be gone free too little of a quota.

        Where the quota does not refuse the pod, this is left out: with fewer pods it does not either.
        """
        refusal = cycle.read(_REFUSAL) or self._refusal(cycle, pod, nodes)
        if refusal is None:
            return ALL
        self._columns.follow(nodes)
        reason = Reason(refusal.status.reasons, refusal.status.code)
        rejected = np.zeros(len(nodes), np.bool_)
        for excess in refusal.excesses:
            rejected |= self._freed(excess, nodes) < excess.over
        return FilterResult(rejected.view(np.int8), (reason,)) if rejected.any() else ALL

    def _freed(self, excess: Excess, nodes: Nodes) -> NDArray[np.int64]:
        """How much of a quota the pods that are assumed to be gone from each node free."""
        changes = nodes.hypothetical_pods
        if changes is None:
            return np.zeros(len(nodes), np.int64)
        tree, gone = self.usage.tree, changes.removed_pods
        counts = below(tree, excess.quota.index)[self._columns.quotas(tree, gone)]
        amounts = np.where(counts, self._columns.amounts(excess.resource)[gone], 0)
        freed: NDArray[np.int64] = np.bincount(changes.removed_from, amounts, len(nodes)).astype(np.int64)
        nominated = nodes.snapshot.nominated
        for place, info in changes.added:
            is_known = nominated.node_of(info.pod.uid) is not None
            if not is_known and excess.quota.index in tree.path(info.pod.namespace):
                freed[place] -= request_of(info, nodes.objects).get(excess.resource, 0)
        return freed

    def events(self) -> tuple[Interest, ...]:
        """Pods that free what a limit is about, and quotas that change."""
        gone = Action.DELETE | Action.UPDATE_POD_SCALE_DOWN
        return (
            on(Resource.POD, gone, self._frees_quota, per_equivalence_class=True),
            on(ELASTIC_QUOTA.resource, Action.ALL, _changes_terms, per_equivalence_class=True),
        )

    def _frees_quota(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        """Whether a pod that goes counts where the first limit is that is in another pod's way.

        What is used is known as of the last cycle: it can only be less by now, or another cycle follows.
        """
        if new is not None and new.uid == pod.uid:
            return True
        tree, path = self.usage.tree, self.usage.tree.path(pod.namespace)
        objects = self._handle.objects
        excesses = list(tree.excess(path, request_of(PodInfo(pod), objects), self.usage.used))
        if not excesses or old is None:
            return True
        if any(each.is_for_ever for each in excesses):
            return False
        excess = excesses[0]
        frees = old.spec.resource_claims or excess.resource in request_of(PodInfo(old), objects)
        return excess.quota.index in tree.path(old.namespace) and bool(frees)

    # Preemption

    def victim_choices(
        self, pod: Pod, nodes: Nodes, group: PodGroupInfo | None
    ) -> Sequence[NDArray[np.bool_] | None]:
        """Borrowers' pods, then with groups of theirs, then with less important pods of the same quota.

        Pods without a quota evict pods without a quota, and from a priority that is the system's, any.
        """
        tree = self.usage.tree
        reclaim = self._reclaim(pod, nodes, group)
        priority = pod.priority if group is None else group.priority
        if reclaim is None:
            if not tree or priority >= _FIRST_SYSTEM_PRIORITY:
                return (None,)
            return ((self.priorities(nodes) < priority) & (self._columns.quotas(tree) == NO_QUOTA),)
        of_own = (reclaim.priorities < priority) & (reclaim.quotas == reclaim.path[0])
        if group is not None:
            anywhere = reclaim.anywhere()
            return reclaim.anywhere(as_requested=True), anywhere, anywhere | of_own
        on_each_node = reclaim.on_each_node()
        with_groups = (reclaim.anywhere(),) if reclaim.units else ()
        return on_each_node, *with_groups, on_each_node | of_own

    def _reclaim(self, pod: Pod, nodes: Nodes, group: PodGroupInfo | None) -> Reclaim | None:
        """What a pod or group may reclaim; None: it has no quota."""
        usage = self.usage
        usage.follow(nodes)
        self._columns.follow(nodes)
        path = usage.tree.path(pod.namespace)
        if not path:
            return None
        preemptors = [pod] if group is None else [*group.all_pods()]
        return Reclaim(
            usage.tree,
            self._columns,
            nodes,
            path,
            _sum_of(preemptors, nodes.objects),
            usage.used,
            usage.with_nominated(pod, nodes, {each.uid for each in preemptors}),
            self.priorities(nodes),
            self._evicted,
            _evicted_together(self._handle.pod_groups),
        )

    def post_filter(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, diagnosis: Diagnosis
    ) -> PostFilterResult | Status | Awaitable[PostFilterResult | Status]:
        """As DefaultPreemption; until victims are seen to be deleted, they are known to leave."""
        answer = super().post_filter(cycle, pod, nodes, diagnosis)
        if isinstance(answer, PostFilterResult | Status):
            return self._completed(answer, cycle, pod, nodes)
        return self._awaited(answer, cycle, pod, nodes)

    async def _awaited(
        self, answer: Awaitable[PostFilterResult | Status], cycle: CycleState, pod: Pod, nodes: Nodes
    ) -> PostFilterResult | Status:
        return self._completed(await answer, cycle, pod, nodes)

    def _completed(
        self, answer: PostFilterResult | Status, cycle: CycleState, pod: Pod, nodes: Nodes
    ) -> PostFilterResult | Status:
        """An answer, or victims on several nodes where no node has enough of them."""
        if not isinstance(answer, PostFilterResult):
            return answer
        refusal = cycle.read(_REFUSAL)
        if answer.status.code is not Code.SUCCESS and refusal is not None:
            answer = self._across_nodes(cycle, pod, nodes, refusal) or answer
        done = self._noted(answer.effects, answer.done)
        return PostFilterResult(answer.status, answer.nominated_node, answer.effects, done, answer.tied)

    def _across_nodes(
        self, cycle: CycleState, pod: Pod, nodes: Nodes, refusal: Refusal
    ) -> PostFilterResult | None:
        """Victims on several nodes that free what a quota lacks; None: there are none."""
        reclaim = self._reclaim(pod, nodes, None)
        if reclaim is None or refusal.status.code is not Code.UNSCHEDULABLE:
            return None
        beyond = cycle.clone()
        beyond.write(_REFUSAL, Refusal((), refusal.status))
        anywhere, infos = reclaim.anywhere(), nodes.snapshot.pods.infos
        of_own = (reclaim.priorities < pod.priority) & (reclaim.quotas == reclaim.path[0])
        for chosen in (anywhere, anywhere | of_own):
            found = AcrossNodes(
                reclaim,
                refusal.excesses,
                chosen,
                self._violating(reclaim, chosen, nodes),
                lambda some: self._handle.run_filters(beyond, pod, some, Diagnosis(len(nodes))),
                self._handle.random.randrange,
            ).find()
            if found is not None:
                row, victims = found
                return self.evict(pod, row, [infos[each] for each in victims], nodes)
        return None

    def _violating(self, reclaim: Reclaim, chosen: NDArray[np.bool_], nodes: Nodes) -> NDArray[np.bool_]:
        """Which pods violate a PodDisruptionBudget if all that are chosen are evicted."""
        infos = nodes.snapshot.pods.infos
        rows = reclaim.least_important_first(np.flatnonzero(chosen))
        violates = np.zeros(len(infos), np.bool_)
        # Budgets are used up by those that go first.
        violates[rows] = self.pdb_violations([infos[row] for row in rows.tolist()], nodes)
        return violates

    async def pod_group_post_filter(
        self, cycle: CycleState, group: PodGroupInfo, dry_run: GroupDryRun
    ) -> PodGroupPostFilterResult:
        """As DefaultPreemption; until victims are seen to be deleted, they are known to leave."""
        answer = await super().pod_group_post_filter(cycle, group, dry_run)
        return replace(answer, done=self._noted(answer.effects, answer.done))

    def _noted(self, effects: Sequence[Effect], done: Callable[[], None]) -> Callable[[], None]:
        """Note victims until effects were performed, or have failed; decisions on paper change nothing."""
        evictions = [each for each in effects if isinstance(each, EvictPods)]
        victims = {pod.uid for each in evictions for pod in each.victims}
        self._count(pod for each in evictions for pod in each.victims)
        if not victims or not self._handle.is_live:
            return done
        self._evicted |= victims

        def all_done() -> None:
            self._evicted -= victims
            done()

        return all_done

    def _count(self, victims: Iterable[Pod]) -> None:
        tree = self.usage.tree
        for pod in victims:
            if path := tree.path(pod.namespace):
                self._evictions.labels(tree.quotas[path[0]].key).inc()


def _evicted_together(groups: PodGroups) -> list[list[Pod]]:
    """The pods on nodes of each group that is evicted as a whole."""
    if not groups.has_scheduled:
        return []
    wholes = {whole: None for pod in groups.all_scheduled() if (whole := groups.evicted_with(pod))}
    return [groups.scheduled(whole) for whole in wholes]


def _request(cycle: CycleState, pod: Pod, objects: Objects) -> Mapping[str, int]:
    """What a pod counts with; without device claims, that is the same for all of its equivalence class."""
    pod_class = cycle.equivalence_class
    if pod_class is None or pod.spec.resource_claims:
        return request_of(PodInfo(pod), objects)
    request = pod_class.read(_REQUEST)
    if request is None:
        request = request_of(PodInfo(pod), objects)
        pod_class.write(_REQUEST, request)
    return request


def _sum_of(pods: Iterable[Pod], objects: Objects) -> dict[str, int]:
    total: dict[str, int] = {}
    for pod in pods:
        for resource, amount in request_of(PodInfo(pod), objects).items():
            total[resource] = total.get(resource, 0) + amount
    return total


def _changes_terms(pod: Pod, old: ElasticQuota | None, new: ElasticQuota | None) -> bool:
    """Whether what a quota says has changed, and not only its status."""
    return old is None or new is None or terms_of(old) != terms_of(new)
