"""Replays: repeat every decision of a recording, and compare all recorded details.

After each pod the recording's decision is applied, not ours, so that one difference does not cause others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from moorage.api.base import Object, ObjectMeta
from moorage.api.decode import InputError
from moorage.api.node import Namespace
from moorage.api.pod import Pod
from moorage.engine.decision import Decision
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.status import Code
from moorage.framework.loading.registry import Registry
from moorage.scheduler.watched_kinds import has_labelled_groups
from moorage.sim.cluster import SimulatedCluster
from moorage.sim.difference import Differ, Difference, compare_scores
from moorage.sim.group_attempts import GroupAttempts
from moorage.sim.group_recording import GroupStep
from moorage.sim.group_replay import GroupReplay
from moorage.sim.recording import ChangeStep, Expectation, PodStep, Recording

GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
"""Message that the API server, not the scheduler, writes for a pod with scheduling gates."""

_NAMESPACE_LABEL = "kubernetes.io/metadata.name"


@dataclass(slots=True)
class FamilyResult:
    """Number of decisions about pods of a family, and how many were equal."""

    pods: int = 0
    equal: int = 0


@dataclass(slots=True)
class ReplayResult:
    """The result of replaying some recordings."""

    families: dict[str, FamilyResult] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    @property
    def pods(self) -> int:
        """Number of pods."""
        return sum(family.pods for family in self.families.values())

    @property
    def equal(self) -> int:
        """Number of pods with equal decisions."""
        return sum(family.equal for family in self.families.values())

    def add(self, recording: Recording, registry: Registry) -> None:
        """Replay one more recording."""
        family = self.families.setdefault(recording.family, FamilyResult())
        replay = Replay(recording, registry)
        for differences in replay.run():
            family.pods += 1
            family.equal += not differences
            self.differences.extend(differences)


class Replay:
    """One recording, replayed."""

    def __init__(self, recording: Recording, registry: Registry) -> None:
        self.recording = recording
        objects = [Namespace(metadata=ObjectMeta(name="default")), *recording.objects]
        stored = (_as_the_server_stores_it(item) for item in objects)
        self.cluster = SimulatedCluster(stored, recording.config, registry, version=recording.version)
        if has_labelled_groups(self.cluster.profiles.values()):
            self.cluster.cache.pod_groups.follow_labels()
        for item in recording.objects:
            if isinstance(item, Pod) and not item.spec.node_name:
                self.cluster.cache.nominations.put(item, item.status.nominated_node_name)
        self._groups = GroupReplay(self.cluster, recording.family, recording.name)
        self._group_attempts = GroupAttempts(
            self.cluster, partial(Difference, recording.family, recording.name)
        )

    def run(self) -> Iterator[list[Difference]]:
        """The differences of each pod, in order."""
        for step in self.recording.steps:
            if isinstance(step, ChangeStep):
                self._apply(step)
            elif isinstance(step, GroupStep):
                self._apply(ChangeStep(step.put, step.delete))
                every = self.recording.every_attempt
                yield list(self._group_attempts.compare(step)) if every else self._groups.run(step)
            else:
                compare = self._compare_attempt if self.recording.every_attempt else self._compare
                yield list(compare(step))

    def _apply(self, step: ChangeStep) -> None:
        cache = self.cluster.cache
        for item in step.put:
            cache.put(_as_the_server_stores_it(item))
            if isinstance(item, Pod) and item.spec.node_name:
                cache.nominations.remove(item.uid)
            # A pod that is being bound may have a nomination as well, which does not count.
            elif isinstance(item, Pod) and cache.pod(item.uid) is None:
                cache.nominations.put(item, item.status.nominated_node_name)
        self._groups.forget(step.delete)
        for item in step.delete:
            if isinstance(item, Pod):
                cache.nominations.remove(item.uid)
                self.cluster.remove_pod(item.key)
            else:
                cache.remove(item)

    def _decide(self, pod: Pod, cycle: CycleState) -> Decision | None:
        """Our decision; None if the pod is not attempted because of its scheduling gates."""
        try:
            framework = self.cluster.framework_of(pod)
        except InputError as error:
            raise InputError(self.recording.name, str(error)) from None
        return None if framework.pre_enqueue(pod) is not None else self.cluster.decide(pod, cycle)

    def _compare(self, step: PodStep) -> Iterator[Difference]:
        cycle = CycleState()
        decision = self._decide(step.pod, cycle)
        expect = step.expect
        differ = partial(Difference, self.recording.family, self.recording.name, step.pod.name)
        if decision is None:
            if expect.node is not None:
                yield differ("node", expect.node, None)
            message = GATED_MESSAGE if step.pod.spec.scheduling_gates else None
            if expect.message != message:
                yield differ("message", expect.message, message)
            return
        ours = _message(decision, expect)
        if expect.seen_waiting and expect.message != ours:
            yield differ("message", expect.message, ours)
        feasible = set(decision.feasible.names)
        for node in sorted(_recorded_feasible(expect) ^ feasible):
            yield differ("feasible", node not in feasible, _why_not(decision, node), node)
        if expect.scores is not None and expect.scores.keys() == feasible:
            yield from compare_scores(expect.scores, decision, differ)
        if not decision.feasible:
            cycle = CycleState()
            compare = self._compare_preemption if self.recording.preempts else self._compare_retry
            yield from compare(step, decision, cycle, differ)
        if expect.node is not None:
            status = self.cluster.bind(step.pod, expect.node, cycle)
            if status.code is not Code.SUCCESS:
                yield differ("binding", expect.node, f"{status.plugin}: {status.message}")

    def _compare_attempt(self, step: PodStep) -> Iterator[Difference]:
        """Compare one attempt; what follows from it is in later steps."""
        cycle, expect = CycleState(), step.expect
        differ = partial(Difference, self.recording.family, self.recording.name, step.pod.name)
        decision = self._decide(step.pod, cycle)
        if decision is None:
            yield differ("node", expect.node, "gated")
            return
        if expect.message != (ours := _message(decision, expect)):
            yield differ("message", expect.message, ours)
        if expect.sampled and expect.scores is not None:
            decision = self._among(decision, expect.scores, cycle)
        if expect.scores is not None:
            feasible = set(decision.feasible.names)
            for node in sorted(expect.scores.keys() ^ feasible):
                yield differ("feasible", node not in feasible, _why_not(decision, node), node)
            if expect.scores.keys() == feasible:
                yield from compare_scores(expect.scores, decision, differ)
        if expect.node is None:
            yield from self._compare_nomination(step, decision, differ)
            return
        if expect.node not in (best := decision.best()):
            yield differ("node", expect.node, best)
        status = self.cluster.bind(step.pod, expect.node, cycle)
        if status.code is not Code.SUCCESS:
            yield differ("binding", expect.node, f"{status.plugin}: {status.message}")

    def _among(self, decision: Decision, names: Iterable[str], cycle: CycleState) -> Decision:
        """The decision if of the feasible nodes only some were found."""
        nodes = decision.feasible.named(names).within(decision.feasible)
        scores = self.cluster.framework_of(decision.pod).score(cycle, decision.pod, nodes)
        return replace(decision, feasible=nodes, scores=scores)

    def _compare_nomination(self, step: PodStep, decision: Decision, differ: Differ) -> Iterator[Difference]:
        """Compare what preemption does in one attempt; only the recorded nomination is applied."""
        expect, arranged = step.expect, decision.post_filter
        if arranged is not None:
            arranged.done()
            if expect.nominated:
                tied = arranged.tied()
                if expect.nominated not in tied and expect.nominated != arranged.nominated_node:
                    yield differ("nominated", expect.nominated, arranged.nominated_node)
                elif expect.victims is not None:
                    recorded, ours = sorted(expect.victims), _keys(tied.get(expect.nominated, ()))
                    if ours != recorded:
                        yield differ("victims", recorded, ours, expect.nominated)
            elif arranged.nominated_node and expect.victims is not None:
                yield differ("nominated", expect.nominated, arranged.nominated_node)
        if expect.nominated is not None:
            self.cluster.cache.nominations.put(step.pod, expect.nominated)

    def _compare_retry(
        self, step: PodStep, decision: Decision, cycle: CycleState, differ: Differ
    ) -> Iterator[Difference]:
        """Apply the result of the post-filters; a pod that was bound in the recording is attempted again."""
        if decision.post_filter is not None:
            self.cluster.arrange(decision.post_filter)
        if step.expect.node is not None:
            again = self._decide(step.pod, cycle)
            best = [] if again is None else again.best()
            if step.expect.node not in best:
                yield differ("node", step.expect.node, best)

    def _compare_preemption(
        self, step: PodStep, decision: Decision, cycle: CycleState, differ: Differ
    ) -> Iterator[Difference]:
        """Compare victims and nomination; then apply the recorded ones, and attempt the pod again."""
        expect = step.expect
        tied = decision.post_filter.tied() if decision.post_filter is not None else {}
        victims = {node: sorted(victim.key for victim in gone) for node, gone in tied.items()}
        recorded = sorted(expect.victims or ())
        nominated = expect.nomination
        if nominated is None:
            if victims:
                yield differ("nominated", None, min(victims))
            return
        if nominated not in victims:
            yield differ("nominated", nominated, min(victims, default=None))
        elif victims[nominated] != recorded:
            yield differ("victims", recorded, victims[nominated], nominated)
        if decision.post_filter is not None:
            decision.post_filter.done()
        for key in recorded:
            self.cluster.remove_pod(key)
        status = replace(step.pod.status, nominated_node_name=nominated)
        again = self._decide(replace(step.pod, status=status), cycle)
        if again is None or again.node != expect.node:
            yield differ("node", expect.node, None if again is None else again.node)


def _keys(pods: Iterable[Pod]) -> list[str]:
    return sorted(pod.key for pod in pods)


def _message(decision: Decision, expect: Expectation) -> str | None:
    """Our message; of several nodes that are equally good to preempt on, it names the recorded one."""
    ours, made = decision.message or None, decision.post_filter
    if ours is None or made is None or not expect.nominated or expect.nominated not in made.tied():
        return ours
    return ours.replace(f" on node {made.nominated_node},", f" on node {expect.nominated},")


def _as_the_server_stores_it(item: Object) -> Object:
    """An object with what the API server adds: every namespace carries its name as a label."""
    if not isinstance(item, Namespace):
        return item
    labels = {**item.labels, _NAMESPACE_LABEL: item.name}
    return replace(item, metadata=replace(item.metadata, labels=labels))


def _recorded_feasible(expect: Expectation) -> set[str]:
    """The feasible nodes of the first attempt, which is the recorded one."""
    if expect.nomination is not None or expect.message is not None:
        return set()
    if expect.scores is not None:
        return set(expect.scores)
    return set() if expect.node is None else {expect.node}


def _why_not(decision: Decision, node: str) -> object:
    """Our result for a node, for display: True, or the plugin and its reasons."""
    row = decision.feasible.snapshot.row_of.get(node)
    if row is None:
        return "no such node"
    refusal = decision.diagnosis.of(row)
    if refusal is not None:
        return f"{refusal.plugin}: {', '.join(refusal.reason.texts)}"
    if node in decision.feasible.names:
        return True
    return decision.message or "left out"
