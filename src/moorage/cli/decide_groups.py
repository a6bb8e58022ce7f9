"""Decisions about groups of pods: each group in one cycle, at the place of its first pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from random import Random

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey, group_of, key_of
from moorage.engine.group_choices import RandomChoices
from moorage.engine.group_result import GroupDecision
from moorage.engine.group_validation import group_problem
from moorage.engine.placement_trials import NotedChoices
from moorage.explain.group_report import GroupReport, group_report, untried_group
from moorage.framework.interface.status import Code
from moorage.sim.cluster import SimulatedCluster
from moorage.sim.pending_groups import PendingGroups


class GroupDecisions:
    """The groups of some pods in a cluster.

    pods: the pods to decide about. objects: those of the cluster; pods without a node among them are pending
    members of their groups, too.
    """

    def __init__(
        self, cluster: SimulatedCluster, pods: Sequence[Pod], objects: Sequence[Object], seed: int
    ) -> None:
        self._cluster = cluster
        self._groups = cluster.cache.pod_groups
        self._pending = PendingGroups(cluster)
        self._asked = {pod.key: pod for pod in pods if not pod.finished and not pod.terminating}
        self._random = Random(seed)
        self._decided: set[GroupKey] = set()
        for item in (*objects, *pods):
            if isinstance(item, Pod) and item.key not in self._asked:
                self._add_others(item)

    def _add_others(self, pod: Pod) -> None:
        """A pod that is not asked about counts among its group's; it is attempted if it has no node."""
        if group_of(pod) is None or pod.spec.node_name or pod.finished:
            return
        if pod.terminating:
            self._groups.add(pod)
        else:
            self._pending.add(pod)

    def about(self, pod: Pod) -> Iterator[GroupReport]:
        """The decisions about a pod's group, if it was not decided yet: one for each cycle."""
        key = group_of(pod)
        assert key is not None
        root = self._groups.root_of(key)
        if (root or key) in self._decided:
            return
        self._decided.add(root or key)
        for each in self._asked.values():
            if self._belongs(each, root or key):
                self._pending.add(self._cluster.take_out(each))
        if root is None:
            yield untried_group(key, "Incomplete", self._missing(key), self._pending.pods(key))
        else:
            yield from self._cycles(root)

    def _belongs(self, pod: Pod, root: GroupKey) -> bool:
        key = group_of(pod)
        return key == root or (key is not None and self._groups.root_of(key) == root)

    def _missing(self, key: GroupKey) -> str:
        """Which group of a hierarchy is missing."""
        known = [group for group in self._groups.ancestors(key) if group is not None]
        if not known:
            return f"there is no PodGroup {key}"
        parent = f"{key.namespace}/{known[-1].parent}"
        return f"there is no CompositePodGroup {parent}, the parent of {key_of(known[-1])}"

    def _cycles(self, root: GroupKey) -> Iterator[GroupReport]:
        """Cycles of a group: members that are left when it is scheduled are tried again at once."""
        for cycle in count(1):
            info = self._pending.info(root)
            scheduled = self._groups.scheduled(root)
            has_policy = self._groups.has_preemption_policy
            if gate := self._pending.gate(info):
                yield untried_group(root, "Gated", gate, tuple(info.all_pods()))
                return
            if problem := group_problem(info, scheduled, has_policy=has_policy):
                yield untried_group(root, "Error", problem, tuple(info.all_pods()))
                return
            self._pending.begin_attempt(info)
            choices = NotedChoices(RandomChoices(self._random))
            decision = self._cluster.decide_group(info, choices)
            failed = self._apply(decision)
            yield group_report(decision, choices.trials(decision).first, failed, cycle)
            is_left = any(pod.key in self._pending for pod in info.all_pods())
            if failed or not (decision.result.status.is_success and is_left):
                return

    def _apply(self, decision: GroupDecision) -> dict[str, str]:
        """Bind members and nominate others, so that later pods see it; why members could not be bound."""
        failed = {}
        for result in decision.leaves():
            for each in result.assignments if result.status.is_success else ():
                self._cluster.cache.nominations.remove(each.pod.uid)
                status = self._cluster.bind(each.pod, each.node_name, each.cycle)
                if status.code is Code.SUCCESS:
                    self._pending.discard(each.pod.key)
                else:
                    failed[each.pod.uid] = ": ".join(filter(None, (status.plugin, status.message)))
        for pod in decision.root.all_pods():
            if node_name := decision.nominated.get(pod.uid):
                self._pending.nominate(pod, node_name)
        if decision.post_filter is not None:
            decision.post_filter.done()
        return failed
