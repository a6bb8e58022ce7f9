"""Recorded attempts of groups, each a step of its own, made again; what follows is in later steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey, group_of
from moorage.engine.followed_nodes import Disagreement, follow
from moorage.engine.group_result import GroupDecision, member_message
from moorage.engine.group_validation import group_problem
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.pod_groups import PodGroupInfo, group_info
from moorage.framework.interface.status import Code
from moorage.sim.cluster import SimulatedCluster
from moorage.sim.difference import Differ, Difference
from moorage.sim.group_comparing import compare_results
from moorage.sim.group_following import RecordedChoices
from moorage.sim.group_recording import GroupExpectation, GroupStep, RecordedCycle


class GroupAttempts:
    """The groups of a cluster of which every attempt is recorded.

    differ: makes a difference, given what it is about.
    """

    def __init__(self, cluster: SimulatedCluster, differ: Callable[..., Difference]) -> None:
        self._cluster = cluster
        self._groups = cluster.cache.pod_groups
        self._differ = differ

    def compare(self, step: GroupStep) -> Iterator[Difference]:
        """Compare one attempt; bindings and nominations are applied as recorded."""
        key = group_of(step.pods[0]) if step.pods else None
        root = None if key is None else self._groups.root_of(key)
        info = None if root is None else group_info(self._groups, root, partial(_members, step))
        if info is None:
            yield self._differ(key.name if key is not None else "", "group", str(key), None)
            return
        differ, problem = partial(self._differ, info.key.name), self._problem(info)
        if not step.expect.cycles:
            for pod in step.pods:
                if (message := _refusal(step.expect, pod)) != problem:
                    yield differ("message", message, problem, pod.key)
            self._nominate(step, {})
            return
        [recorded] = step.expect.cycles
        if problem or recorded.group != str(info.key):
            yield differ("group", recorded.group, problem or str(info.key))
            return
        if recorded.nodes is None:
            yield from self._compare_cycle(step, info, recorded, differ)
        else:
            yield from self._compare_nodes(step, info, recorded.nodes, differ)

    def _problem(self, info: PodGroupInfo) -> str:
        scheduled = self._groups.scheduled(info.key)
        return group_problem(info, scheduled, has_policy=self._groups.has_preemption_policy)

    def _compare_cycle(
        self, step: GroupStep, info: PodGroupInfo, recorded: RecordedCycle, differ: Differ
    ) -> Iterator[Difference]:
        """Compare all that was tried, and how it ended."""
        follower = RecordedChoices(recorded, differ)
        decision = self._cluster.decide_group(info, follower)
        yield from follower.differences
        yield from compare_results(recorded, decision, differ)
        victims = sorted(victim.key for victim in decision.victims)
        if victims != sorted(step.expect.victims):
            yield differ("victims", sorted(step.expect.victims), victims)
        self._nominate(step, recorded.nominated)
        yield from self._apply(decision, differ)

    def _compare_nodes(
        self, step: GroupStep, info: PodGroupInfo, nodes: dict[str, str], differ: Differ
    ) -> Iterator[Difference]:
        """Compare an attempt of which the nodes are known, and nothing else."""
        by_uid = {pod.uid: nodes[pod.key] for pod in step.pods if pod.key in nodes}
        made = follow(info, by_uid, partial(self._cluster.decide_group, info))
        if made.disagreement is not None:
            yield _difference(made.disagreement, nodes, differ)
        if made.decision.post_filter is not None:
            made.decision.post_filter.done()
        cycles = {
            each.pod.uid: each.cycle
            for result in made.decision.leaves()
            for each in result.assignments
            if each.node_name == by_uid.get(each.pod.uid)
        }
        for pod in step.pods:
            if (node := by_uid.get(pod.uid)) is not None:
                yield from self._bind(pod, node, cycles.get(pod.uid, CycleState()), differ)

    def _nominate(self, step: GroupStep, nominated: dict[str, str]) -> None:
        for pod in step.pods:
            self._cluster.cache.nominations.put(pod, nominated.get(pod.key, ""))

    def _apply(self, decision: GroupDecision, differ: Differ) -> Iterator[Difference]:
        """Bind the members that have nodes."""
        if decision.post_filter is not None:
            decision.post_filter.done()
        for result in decision.leaves():
            for member in result.members:
                if member.node_name is not None and member_message(result, member) is None:
                    yield from self._bind(member.pod, member.node_name, member.cycle, differ)

    def _bind(self, pod: Pod, node: str, cycle: CycleState, differ: Differ) -> Iterator[Difference]:
        status = self._cluster.bind(pod, node, cycle)
        if status.code is not Code.SUCCESS:
            yield differ("binding", node, f"{status.plugin}: {status.message}", pod.key)


def _members(step: GroupStep, key: GroupKey) -> list[Pod]:
    return [pod for pod in step.pods if group_of(pod) == key]


def _refusal(expect: GroupExpectation, pod: Pod) -> str | None:
    recorded = expect.pods.get(pod.key)
    return None if recorded is None else recorded.message


def _difference(found: Disagreement, nodes: dict[str, str], differ: Differ) -> Difference:
    if found.member is not None:
        decision = found.member.decision
        best = decision.best() if decision.node is not None else decision.message
        return differ("node", nodes.get(decision.pod.key), best, decision.pod.key)
    if found.placement is not None:
        taken = found.placement
        ours = taken.best.placement.name
        return differ("chosen", taken.trial.placement.name, ours, str(taken.trial.group))
    return differ("result", "Scheduled", found.message)
