"""A question of what-if, answered: the pod and the cluster as they are, and as they would be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from msgspec.structs import replace

from moorage.api.decode import InputError
from moorage.api.manifests import Manifest
from moorage.api.pod import Pod
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.explain.cluster_reader import ClusterContent
from moorage.explain.document import as_document
from moorage.explain.explanation import Explanation, explain
from moorage.explain.help.change import Situation
from moorage.explain.help.trials import Trials
from moorage.explain.loading import LoadedCluster, loaded, with_known_profile
from moorage.framework.runtime.framework import Framework
from moorage.sim.cluster import SimulatedCluster
from moorage.ui.what_if.changes import CLUSTER_CHANGES, ApplySuggestion, SetWeight
from moorage.ui.what_if.configurations import read_configuration_text
from moorage.ui.what_if.differences import differences
from moorage.ui.what_if.documents import MAX_CHANGES, Answer, OtherPod, OtherPods, WhatIf
from moorage.ui.what_if.pods import read_pod_text

MAX_OTHERS: Final = 50
"""Number of other pods that are evaluated."""


class Evaluator(Protocol):
    """How pods are evaluated: a version, a configuration, and clusters with any configuration."""

    def version(self, server: KubernetesVersion | None) -> KubernetesVersion:
        """The version to behave like; `server` is that of the server."""

    def configuration(self, version: KubernetesVersion) -> SchedulerConfiguration:
        """The configuration in force."""

    def cluster(self, config: SchedulerConfiguration, version: KubernetesVersion) -> SimulatedCluster:
        """An empty cluster."""


@dataclass(slots=True)
class Reading:
    """What was read of a cluster for a question."""

    pod: Pod | None
    """The pod that the question is about; None: it is new."""
    content: ClusterContent
    priority_classes: list[Manifest]


class Question:
    """A question whose texts are valid; TextError or InputError if they are not."""

    def __init__(self, asked: WhatIf, evaluator: Evaluator, server: KubernetesVersion | None) -> None:
        if not asked.of and asked.pod is None:
            raise InputError("", "of or pod is needed: which pod is it about?")
        if len(asked.changes) > MAX_CHANGES:
            raise InputError("changes", f"more than {MAX_CHANGES}")
        self.asked = asked
        version = evaluator.version(server)
        own = evaluator.configuration(version)
        config = own if asked.config is None else read_configuration_text(asked.config, version, own)
        for change in asked.changes:
            if isinstance(change, SetWeight):
                config = change.configured(config)
        self.now = evaluator.cluster(own, version)
        self.then = evaluator.cluster(config, version)
        self._is_reconfigured = config != own

    @property
    def profiles(self) -> list[Framework]:
        """All profiles, of now and then."""
        return [*self.now.profiles.values(), *self.then.profiles.values()]

    def answer(self, reading: Reading) -> Answer:
        """The answer; TextError if the pod's text is invalid."""
        present = reading.pod
        given = None
        if self.asked.pod is not None:
            given = _in_place_of(present, read_pod_text(self.asked.pod, reading.priority_classes))
        now_pod, then_pod = present or given, given or present
        assert now_pod is not None
        assert then_pod is not None
        content = reading.content if present is not None else _with(reading.content, None, now_pod)
        now = loaded(self.now, now_pod, content)
        explained_now = _explained(now)
        situation = self._suggested(
            explained_now, replace(then_pod, spec=replace(then_pod.spec, node_name=""))
        )
        then = loaded(self.then, situation.pod, _with(reading.content, present, situation.pod))
        displaced = self._change(then.cluster, situation)
        explained_then = _explained(then)
        others = None
        if self._is_reconfigured or self._changes_cluster(situation):
            others = self._others(reading, (now.pod.key, then.pod.key), displaced)
        return Answer(
            now=as_document(explained_now),
            then=as_document(explained_then),
            differences=differences(explained_now, explained_then, others),
        )

    def _suggested(self, now: Explanation, pod: Pod) -> Situation:
        """What is so after the suggestions that are to be applied."""
        situation = Situation(pod)
        for change in self.asked.changes:
            if isinstance(change, ApplySuggestion):
                if self.asked.pod is not None and self.asked.of:
                    raise InputError("suggestion", "is for the pod as it is: take back the edits of the pod")
                suggestion = next((each for each in now.help if str(each) == change.text), None)
                if suggestion is None:
                    raise InputError("suggestion", f"is not among those for the pod now: {change.text}")
                for each in suggestion.changes:
                    situation = each.apply(situation)
        return situation

    def _changes_cluster(self, situation: Situation) -> bool:
        changes = any(isinstance(each, CLUSTER_CHANGES) for each in self.asked.changes)
        return changes or bool(situation.put or situation.removed)

    def _change(self, cluster: SimulatedCluster, situation: Situation) -> list[Pod]:
        """Make all changes; returns the pods that lose their node."""
        displaced = [each for each in situation.removed.values() if isinstance(each, Pod)]
        for item in situation.removed.values():
            cluster.cache.remove(item)
        for item in situation.put.values():
            cluster.cache.put(item)
        for change in self.asked.changes:
            if isinstance(change, CLUSTER_CHANGES):
                displaced += change.apply(cluster)
        return displaced

    def _others(self, reading: Reading, about: Sequence[str], displaced: Sequence[Pod]) -> OtherPods:
        """How the pods that lose their node, and those that have none, fare; each alone."""
        lost = [each for each in displaced if each.key not in about]
        waiting = [each for each in _waiting(reading.content) if each.key not in about]
        concerned = [*lost, *sorted(waiting, key=lambda each: (-each.priority, each.key))]
        evaluated = concerned[:MAX_OTHERS]
        items = []
        for pod in evaluated:
            before, after = _fitting(self.now, pod), _fitting(self.then, pod)
            if pod.spec.node_name or bool(before) != bool(after):
                items.append(OtherPod(pod=pod.key, node=pod.spec.node_name, before=before, after=after))
        return OtherPods(total=len(concerned), evaluated=len(evaluated), items=tuple(items))


def _explained(cluster: LoadedCluster) -> Explanation:
    explanation = explain(cluster.cluster, cluster.pod)
    explanation.notes[:0] = cluster.notes
    return explanation


def _in_place_of(present: Pod | None, given: Pod) -> Pod:
    """An edited pod with the identity of the one in the cluster."""
    if present is None:
        return given
    meta = replace(
        given.metadata, uid=present.metadata.uid, creation_timestamp=present.metadata.creation_timestamp
    )
    return replace(given, metadata=meta)


def _with(content: ClusterContent, present: Pod | None, pod: Pod) -> ClusterContent:
    """A cluster with a pod in the place of another one, or beside all others."""
    taken = {pod.uid} if present is None else {pod.uid, present.uid}
    others = (each for each in content.objects if not (isinstance(each, Pod) and each.uid in taken))
    return ClusterContent([*others, pod], content.forbidden)


def _waiting(content: ClusterContent) -> Iterator[Pod]:
    for item in content.objects:
        if isinstance(item, Pod) and not (item.spec.node_name or item.finished or item.terminating):
            yield item


def _fitting(cluster: SimulatedCluster, pod: Pod) -> int:
    """How many nodes a pod fits, as if it had none; 0 if it is not tried."""
    known = with_known_profile(cluster, replace(pod, spec=replace(pod.spec, node_name="")))
    framework, placed = cluster.profiles.of(known), cluster.cache.pod(pod.uid)
    if framework is None or cluster.not_tried(known):
        return 0
    if placed is not None:
        cluster.cache.remove_pod(placed)
    try:
        return len(Trials(framework, cluster.cache, known).opened(()))
    finally:
        if placed is not None:
            cluster.cache.put(placed)
