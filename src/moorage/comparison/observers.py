"""What is noted of the runs while they go on: what happens, and what moved each pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.client.declared_kinds import kind_of_object
from moorage.client.informer import EventType, Informer
from moorage.client.kinds import POD
from moorage.clock import Clock
from moorage.comparison.attribution import Attribution, attribution
from moorage.comparison.event_log import EventLog, FollowedLog
from moorage.comparison.identities import Identities, PodIdentity
from moorage.comparison.results import FirstDifference
from moorage.comparison.score_details import points_of
from moorage.config.types import Profile
from moorage.engine.decision import Decision
from moorage.engine.engine import Engine
from moorage.engine.run_without_suspending import run_without_suspending
from moorage.framework.interface.handle import Handle
from moorage.framework.interface.nodes import Nodes
from moorage.framework.loading.registry import Registry
from moorage.framework.runtime.framework import Framework
from moorage.queue.queued_pod import QueuedPod
from moorage.scheduler.observers import Observer
from moorage.scheduler.watched_kinds import needed_kinds
from moorage.simulation.settings import Settings

_MAX_SCORED: Final = 1000
"""Number of pods whose scores are kept; what moved the others is known without them."""


class RunObserver(Observer):
    """Follows a run: the identities of its pods, and what happens."""

    def __init__(self, log: EventLog | None = None) -> None:
        super().__init__()
        self.identities = Identities()
        self.log = EventLog() if log is None else log
        self._clock: Clock | None = None

    def framework(self, profile: Profile, registry: Registry, handle: Handle) -> Framework:
        """A profile's framework."""
        self._clock = handle.clock
        return super().framework(profile, registry, handle)

    def observe_informers(self, informers: Sequence[Informer[Any]]) -> None:
        """Informers were created."""
        for informer in informers:
            if informer.kind == POD:
                informer.listeners.append(self._pod_changed)

    def _pod_changed(self, type: EventType, obj: Object, before: Object | None) -> None:
        assert isinstance(obj, Pod)
        if type == "ADDED" and not obj.spec.node_name:
            self.identities.add(obj)
        is_ending = obj.metadata.deletion_timestamp is not None
        state = obj.spec.node_name, obj.status.nominated_node_name, is_ending
        self._note(obj, type, *state)
        if type == "DELETED":
            self.identities.remove(obj)

    def decided(self, queued: QueuedPod, decision: Decision) -> None:
        """The scheduling cycle found a node for a pod, or none."""
        self._note(decision.pod, "decided", decision.node)

    def _note(self, pod: Pod, *event: object) -> None:
        self.log.note(self._now(), self.identities.of(pod.uid) or pod.key, *event)

    def _now(self) -> float:
        assert self._clock is not None
        return self._clock.now()


class MoveObserver(RunObserver):
    """Follows a run, and determines what moves pods to other nodes than in a run that has ended.

    other: how that run was configured. log: what happened in it. nodes: where its pods were bound.
    cluster: the objects that both began with.
    """

    def __init__(
        self, other: Settings, log: EventLog, nodes: Mapping[PodIdentity, str], cluster: Sequence[Object]
    ) -> None:
        self._followed = FollowedLog(log)
        super().__init__(self._followed)
        self.attributions: dict[PodIdentity, Attribution] = {}
        """By pod, of its last decision; only where that is another node."""
        self.first: FirstDifference | None = None
        self._other, self._nodes, self._cluster = other, nodes, cluster
        self._engine = Engine(other.config.percentage_of_nodes_to_score, other.seed)
        """Decides as the other run would have."""
        self._frameworks: dict[str, tuple[Framework, Framework]] = {}
        """By scheduler name, that of the run, and that of the other configuration."""

    def framework(self, profile: Profile, registry: Registry, handle: Handle) -> Framework:
        """A profile's framework."""
        made = super().framework(profile, registry, handle)
        other = self._other.config.profile(profile.scheduler_name)
        if other is not None:
            beside = replace(handle, random=Random(self._other.seed), version=self._other.version)
            self._frameworks[made.name] = made, Framework(other, self._other.registry, beside)
            # Groups are shared with the other framework, and keep to the rules of this run.
            handle.pod_groups.set_features(handle.version.features)
        return made

    def observe_informers(self, informers: Sequence[Informer[Any]]) -> None:
        """Let the other configuration's plugins see the kinds, too, that only they read."""
        super().observe_informers(informers)
        followed = {informer.kind for informer in informers}
        for _, other in self._frameworks.values():
            unknown = set(needed_kinds([other])) - followed
            for obj in self._cluster:
                if kind_of_object(obj) in unknown:
                    other.handle.objects.put(obj)

    def decided(self, queued: QueuedPod, decision: Decision) -> None:
        """Determine what moves a pod, if its node is another one."""
        was_same = self._followed.is_same
        super().decided(queued, decision)
        identity = self.identities.of(queued.uid)
        if identity is None:
            return
        former, is_first = self._nodes.get(identity, ""), was_same and not self._followed.is_same
        self.attributions.pop(identity, None)
        if former == (decision.node or ""):
            return
        if former and decision.node is not None:
            self._explain(identity, decision, former, is_first=is_first)
        elif is_first:
            self.first = FirstDifference(
                str(identity), self._now(), former, decision.node or "", decision.message
            )

    def _explain(self, identity: PodIdentity, decision: Decision, former: str, *, is_first: bool) -> None:
        frameworks = self._frameworks.get(decision.pod.spec.scheduler_name)
        if frameworks is None:
            return
        if decision.scores is not None:
            decision.scores.by_plugin  # noqa: B018  They can be read only before the next cycle.
        found = attribution(decision, self._decided_by(frameworks[1], decision), former)
        if is_first:
            node = decision.node or ""
            points = (points_of(each, decision, (found.instead or former, node)) for each in frameworks)
            self.first = FirstDifference(
                str(identity), self._now(), former, node, "", found.plugin, found.reason, *points
            )
        if len(self.attributions) >= _MAX_SCORED:
            found.scores, found.other_scores = {}, {}
        self.attributions[identity] = found

    def _decided_by(self, framework: Framework, decision: Decision) -> Decision:
        """What the other configuration decides in the same cluster; nothing is preempted."""
        snapshot = decision.feasible.snapshot
        return run_without_suspending(
            self._engine.decide_async(framework, decision.pod, snapshot, placement=Nodes(snapshot))
        )
