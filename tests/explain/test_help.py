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


def cluster_of(objects: Iterable[Object]) -> SimulatedCluster:
    return SimulatedCluster(objects, default_config(DEFAULT_VERSION), default_registry())


def applied(objects: Sequence[Object], pod: Pod, changes: Iterable[Change]) -> Decision:
    """The decision in a new cluster in which the changes were made."""
    situation = Situation(pod)
    for change in changes:
        situation = change.apply(situation)
    left = [each for each in objects if key_of(each) not in {**situation.put, **situation.removed}]
    return cluster_of([*left, *situation.put.values()]).decide(situation.pod, CycleState())


def check(objects: Sequence[Object], pod: Pod, suggestion: Suggestion) -> None:
    changes = suggestion.changes
    decision = applied(objects, pod, changes)
    assert sorted(decision.feasible.names) == list(suggestion.nodes), suggestion
    assert decision.node is not None
    for index, change in enumerate(changes):
        before, after = changes[:index], changes[index + 1 :]
        assert applied(objects, pod, (*before, *after)).node is None, suggestion
        less = smaller(change)
        if less is not None:
            assert applied(objects, pod, (*before, less, *after)).node is None, suggestion


def pending_clusters(part: int, parts: int, count: int) -> Iterator[tuple[list[Object], Pod]]:
    """Clusters in which the pod fits nowhere."""
    found, seed = 0, part
    while found < count:
        random = RandomCluster(seed)
        objects, pod = [make(each) for each in random.objects], make(random.pod)
        assert isinstance(pod, Pod)
        seed += parts
        if not cluster_of(objects).decide(pod, CycleState()).feasible:
            found += 1
            yield objects, pod


@pytest.mark.parametrize("part", range(6))
def test_every_suggestion_helps_and_nothing_less_does(part: int) -> None:
    for objects, pod in pending_clusters(part, 6, 50):
        cluster = cluster_of(objects)
        explanation = explain(cluster, pod)
        cluster.cache.validate()
        assert explanation.help, explanation.verdict
        for suggestion in explanation.help:
            check(objects, pod, suggestion)
