"""What would help: each suggestion, applied for real, makes the pod schedulable, and nothing less does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pytest

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.config.load import default_config
from moorage.emulation.kubernetes_version import DEFAULT_VERSION
from moorage.engine.decision import Decision
from moorage.explain.explanation import explain
from moorage.explain.help.change import Change, Situation, key_of, smaller
from moorage.explain.help.search import Suggestion
from moorage.framework.interface.cycle_state import CycleState
from moorage.plugins import default_registry
from moorage.sim.cluster import SimulatedCluster
from tests.builders import make
from tests.explain.clusters import RandomCluster

PODS = 300
PARTS = 6


class RealCluster:
    """A cluster whose objects are replaced by others: what decisions in it rest on are these alone."""

    def __init__(self) -> None:
        self.cluster = SimulatedCluster((), default_config(DEFAULT_VERSION), default_registry())
        self._objects: list[Object] = []

    def fill(self, objects: Iterable[Object]) -> SimulatedCluster:
        for each in reversed(self._objects):
            self.cluster.cache.remove(each)
        self._objects = list(objects)
        for each in self._objects:
            self.cluster.cache.put(each)
        return self.cluster

    def after(self, objects: Sequence[Object], pod: Pod, changes: Iterable[Change]) -> Decision:
        """The decision in a cluster in which changes were made."""
        situation = Situation(pod)
        for change in changes:
            situation = change.apply(situation)
        left = [each for each in objects if key_of(each) not in {**situation.put, **situation.removed}]
        return self.fill([*left, *situation.put.values()]).decide(situation.pod, CycleState())


def check(real: RealCluster, objects: Sequence[Object], pod: Pod, suggestion: Suggestion) -> None:
    changes = suggestion.changes
    decision = real.after(objects, pod, changes)
    assert sorted(decision.feasible.names) == list(suggestion.nodes), suggestion
    assert decision.node is not None
    for index, change in enumerate(changes):
        before, after = changes[:index], changes[index + 1 :]
        assert real.after(objects, pod, (*before, *after)).node is None, suggestion
        less = smaller(change)
        if less is not None:
            assert real.after(objects, pod, (*before, less, *after)).node is None, suggestion


def pending_clusters(real: RealCluster, part: int, count: int) -> Iterator[tuple[list[Object], Pod]]:
    """Clusters in which the pod fits nowhere."""
    found, seed = 0, part
    while found < count:
        random = RandomCluster(seed)
        objects, pod = [make(each) for each in random.objects], make(random.pod)
        assert isinstance(pod, Pod)
        seed += PARTS
        if not real.fill(objects).decide(pod, CycleState()).feasible:
            found += 1
            yield objects, pod


@pytest.mark.parametrize("part", range(PARTS))
def test_every_suggestion_helps_and_nothing_less_does(part: int) -> None:
    explaining, real = RealCluster(), RealCluster()
    for objects, pod in pending_clusters(real, part, PODS // PARTS):
        cluster = explaining.fill(objects)
        explanation = explain(cluster, pod)
        cluster.cache.validate()
        assert explanation.help, explanation.verdict
        for suggestion in explanation.help:
            check(real, objects, pod, suggestion)
