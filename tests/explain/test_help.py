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
from tests.builders import HOSTNAME, REQUIRED, ZONE, Manifest, make, node, owner, pod, pod_term, spread
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


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_suggestion_helps_and_nothing_less_does(part: int) -> None:
    explaining, real = RealCluster(), RealCluster()
    for objects, pending in pending_clusters(real, part, PODS // PARTS):
        cluster = explaining.fill(objects)
        explanation = explain(cluster, pending)
        cluster.cache.validate()
        assert explanation.help, explanation.verdict
        for suggestion in explanation.help:
            check(real, objects, pending, suggestion)


def helped(pending: Manifest, *others: Manifest) -> list[str]:
    """What would help a pending pod in a cluster."""
    cluster = RealCluster().fill([make(each) for each in others])
    decoded = make(pending)
    assert isinstance(decoded, Pod)
    return [str(each) for each in explain(cluster, decoded).help]


WEB = {"matchLabels": {"app": "web"}}


def away_from(*terms: Manifest) -> Manifest:
    """Affinity with required terms of anti-affinity."""
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def test_pods_that_come_back_to_their_node_are_not_evicted_from_a_domain() -> None:
    nodes = [node(name, labels={HOSTNAME: name, ZONE: "a"}) for name in ("a1", "a2")]
    apart = pod("apart", affinity=away_from(pod_term(ZONE, WEB)))
    agent = pod("agent", on="a1", labels={"app": "web"}, owners=[owner("DaemonSet", "agent")])
    texts = helped(apart, *nodes, agent)
    assert any(text.startswith("drop the anti-affinity term") for text in texts)
    assert not any("evict" in text for text in texts)
    plain = pod("plain", on="a1", labels={"app": "web"})
    assert "evict default/plain" in helped(apart, *nodes, plain)


def test_a_node_gets_all_topology_labels_that_it_lacks() -> None:
    constraints = [spread(ZONE, WEB), spread("rack", WEB)]
    pending = pod("web-1", labels={"app": "web"}, topology_spread_constraints=constraints)
    texts = helped(pending, node("bare", labels={HOSTNAME: "bare"}))
    assert f"label node bare {ZONE}=bare and label node bare rack=bare" in texts


def test_a_term_that_is_repeated_is_dropped_as_one() -> None:
    term = pod_term(HOSTNAME, WEB)
    here = node("n", labels={HOSTNAME: "n"})
    pending = pod("p", affinity=away_from(term, term))
    texts = helped(pending, here, pod("q", on="n", labels={"app": "web"}))
    assert f"drop the anti-affinity term over {HOSTNAME} for pods with app=web" in texts
