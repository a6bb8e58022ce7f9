"""Replays of groups: the recorded choices are followed, and everything else is compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from random import Random

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.api.pod_groups import INITIALLY_SCHEDULED, CompositePodGroup, Group, GroupKey, PodGroup, key_of
from moorage.engine.group_choices import RandomChoices
from moorage.engine.group_result import GroupDecision, GroupResult, MemberResult
from moorage.engine.group_validation import group_problem
from moorage.framework.interface.pod_groups import PodGroupInfo
from moorage.framework.interface.status import Code
from moorage.sim.cluster import SimulatedCluster
from moorage.sim.difference import Differ, Difference, within
from moorage.sim.group_comparing import are_equal, compare_results, messages_of
from moorage.sim.group_conditions import GroupConditions, condition_fields
from moorage.sim.group_following import RecordedChoices
from moorage.sim.group_recording import GroupExpectation, GroupStep, RecordedCycle
from moorage.sim.pending_groups import PendingGroups


class GroupReplay:
    """The groups of a recorded cluster."""

    def __init__(self, cluster: SimulatedCluster, family: str, name: str) -> None:
        self._cluster = cluster
        self._cache = cluster.cache
        self._groups = cluster.cache.pod_groups
        self._family = family
        self._name = name
        self._pending = PendingGroups(cluster)
        self._messages: dict[str, str | None] = {}
        self._conditions = GroupConditions(self._groups)
        self._victims: list[str] = []

    def forget(self, items: Iterable[Object]) -> None:
        """Objects were deleted."""
        for item in items:
            if isinstance(item, Pod):
                self._pending.discard(item.key)
                self._groups.remove(item)
            elif isinstance(item, Group):
                self._conditions.forget(key_of(item))

    def run(self, step: GroupStep) -> list[Difference]:
        """Apply a step, and compare what follows."""
        before = set(self._pending)
        for pod in step.pods:
            self._pending.add(pod)
        concerned = before | set(self._pending)
        self._messages, self._victims = {}, []
        self._conditions.catch_up()
        differ = partial(Difference, self._family, self._name, _subject(step))
        found: list[Difference] = []
        for number, recorded in enumerate(step.expect.cycles):
            found += self._cycle(recorded, step.expect, partial(within, differ, f"cycle {number}"))
        if not step.expect.cycles:
            found += self._idle(differ)
        found += self._compare_end(step.expect, concerned, differ)
        return found

    # One cycle

    def _cycle(
        self, recorded: RecordedCycle, expect: GroupExpectation, differ: Differ
    ) -> Iterator[Difference]:
        root = self._root_named(recorded.group)
        if root is None:
            yield differ("group", recorded.group, None)
            return
        info = self._pending.info(root)
        if gated := self._pending.gate(info):
            yield differ("gated", None, gated)
        self._pending.begin_attempt(info)
        follower = RecordedChoices(recorded, differ)
        decision = self._cluster.decide_group(info, follower)
        yield from follower.differences
        for result in decision.leaves():
            self._note(result)
        yield from compare_results(recorded, decision, differ)
        yield from self._apply(recorded, decision, expect, differ)
        if not decision.result.status.is_success:
            self._conditions.catch_up()

    def _idle(self, differ: Differ) -> Iterator[Difference]:
        """No cycle is recorded: no group may get a node or preempt."""
        for root in self._pending.roots():
            info = self._pending.info(root)
            if self._pending.gate(info):
                continue
            problem = group_problem(
                info, self._groups.scheduled(root), has_policy=self._groups.has_preemption_policy
            )
            if problem:
                self._refuse(info, problem)
                continue
            decision = self._cluster.decide_group(info, RandomChoices(Random(0)))
            if decision.result.status.is_success or decision.result.is_waiting_on_preemption:
                yield differ("cycle", None, f"{root}: {decision.result.status.message or 'scheduled'}")

    def _refuse(self, info: PodGroupInfo, problem: str) -> None:
        for pod in info.all_pods():
            self._messages[pod.key] = problem
        for leaf in info.leaves():
            self._conditions.write(leaf.key, "False", "SchedulerError", problem)

    def _root_named(self, name: str) -> GroupKey | None:
        namespace, _, name = name.partition("/")
        for kind in (CompositePodGroup, PodGroup):
            group = self._cache.objects.of(kind).get(namespace, name)
            if group is not None and (kind is PodGroup or self._groups.is_nested):
                return key_of(group)
        return None

    # Results

    def _note(self, result: GroupResult) -> None:
        """Keep what is written about a group."""
        status, key, message = result.status, result.info.key, result.message
        if status.is_success:
            self._conditions.write(key, "True", "Scheduled", message)
        else:
            reason = "SchedulerError" if status.is_error else "Unschedulable"
            self._conditions.write(key, "False", reason, message)
        self._messages.update(messages_of(result))

    def _apply(
        self, recorded: RecordedCycle, decision: GroupDecision, expect: GroupExpectation, differ: Differ
    ) -> Iterator[Difference]:
        """Bind, nominate and evict as recorded."""
        for result in decision.leaves():
            if result.status.is_success:
                for member in result.members:
                    if member.node_name is not None:
                        yield from self._bind(member, differ)
        for pod in list(decision.root.all_pods()):
            if pod.key in self._pending:
                self._pending.nominate(pod, recorded.nominated.get(pod.key, ""))
        made = decision.post_filter
        if made is None:
            return
        made.done()
        for key in _followed([victim.key for victim in decision.victims], expect):
            self._cluster.remove_pod(key)
            self._victims.append(key)

    def _bind(self, member: MemberResult, differ: Differ) -> Iterator[Difference]:
        pod = member.pod
        assert member.node_name is not None
        self._cache.nominations.remove(pod.uid)
        status = self._cluster.bind(pod, member.node_name, member.cycle)
        if status.code is not Code.SUCCESS:
            yield differ("binding", member.node_name, f"{status.plugin}: {status.message}", pod.key)
        self._pending.discard(pod.key)
        self._messages.pop(pod.key, None)

    def _compare_end(
        self, expect: GroupExpectation, concerned: Iterable[str], differ: Differ
    ) -> Iterator[Difference]:
        if sorted(self._victims) != sorted(expect.victims):
            yield differ("victims", sorted(expect.victims), sorted(self._victims))
        for key, theirs in expect.pods.items():
            if (theirs.node is None) != (key in self._pending):
                yield differ("pending", theirs.node is None, key in self._pending, key)
        for name, conditions in expect.groups.items():
            if name.startswith("composite:"):
                continue
            namespace, _, group = name.partition("/")
            named = GroupKey(namespace, group)
            ours = self._conditions.possible(named)
            recorded = next((each for each in conditions if each.type == INITIALLY_SCHEDULED), None)
            if not any(are_equal(each, condition_fields(recorded)) for each in ours):
                yield differ("condition", condition_fields(recorded), ours, name)
            self._conditions.settle(named, condition_fields(recorded))


def _subject(step: GroupStep) -> str:
    groups = [item.name for item in step.put if isinstance(item, Group)]
    return ",".join(groups) or ",".join(pod.name for pod in step.pods) or "change"


def _followed(evicted: Sequence[str], expect: GroupExpectation) -> list[str]:
    """Our victims; among units that nothing tells apart, the recorded ones."""
    recorded = set(expect.victims)
    result = list(evicted)
    for units in expect.tied:
        alternatives = [key for unit in units for key in unit]
        taken = [key for key in result if key in alternatives]
        if taken:
            wanted = [key for key in alternatives if key in recorded]
            result = [key for key in result if key not in alternatives] + wanted
    return list(dict.fromkeys(result))
