"""Whatever happens to nodes, pods and their objects: what is remembered is what would be worked out anew."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from moorage import Cache, CycleState, Decision, Engine, Handle, Pod, Profiles, default_registry, parse_config
from moorage.api.decode import convert
from moorage.api.pod import PodStatus
from moorage.framework.runtime.framework import Framework
from tests.builders import make_node, make_pod
from tests.optional_plugins.numa.test_accounting import PRINT, of
from tests.optional_plugins.numa.zones import GPU, STARTED, burstable, guaranteed, limited, topology

NAMES = ("n0", "n1", "n2")
UIDS = tuple(f"u{number}" for number in range(6))
NAME, UID, TEMPLATE = st.sampled_from(NAMES), st.sampled_from(UIDS), st.integers(0, 4)
LEFT = st.integers(0, 4)
POLICY = st.sampled_from(["single-numa-node", "single-numa-node", "restricted", "none"])
SCOPE = st.sampled_from(["pod", "container"])
PLUGINS = ("PrioritySort", "NodeResourcesFit", "Numa", "DefaultPreemption", "DefaultBinder")
ROOM = {"cpu": "12", "memory": "64Gi", "pods": "10", GPU: "4"}


def template(number: int, uid: str) -> Pod:
    if number == 0:
        return guaranteed(uid, {"cpu": "1"})
    if number == 1:
        return guaranteed(uid, {"cpu": "2"}, {"cpu": "1"}, priority=10)
    if number == 2:
        return make_pod(uid, uid=uid, containers=[burstable({"cpu": "1", GPU: "1"})])
    if number == 3:
        side = limited({"cpu": "1", "memory": "1Gi"}, "side", restartPolicy="Always")
        return guaranteed(uid, {"cpu": "2", GPU: "1"}, init_containers=[side])
    return make_pod(uid, uid=uid, requests={"cpu": "1"})


def framework(cache: Cache, strategy: str) -> Framework:
    args = {"scoringStrategy": {"type": strategy}}
    plugins = {"multiPoint": {"enabled": [{"name": name} for name in PLUGINS], "disabled": [{"name": "*"}]}}
    config = parse_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": plugins, "pluginConfig": [{"name": "Numa", "args": args}]}],
        }
    )
    handle = Handle(
        cache.objects,
        nominations=cache.nominations,
        snapshot=cache.latest_snapshot,
        pods_on=cache.pods_on,
    )
    (made,) = Profiles(config, default_registry(), handle).values()
    return made


class Remembering(RuleBasedStateMachine):
    """Pods of some templates are placed, started and deleted; objects of nodes come, change and go."""

    strategy = "LeastNUMANodes"

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.remembering, self.plain = Engine(seed=1), Engine(seed=1, remembers=False)
        self.framework = framework(self.cache, self.strategy)
        self.other = framework(self.cache, self.strategy)
        self.placed: dict[str, Pod] = {}

    @initialize()
    def some_nodes_are_there(self) -> None:
        for name in NAMES:
            self.put_node(name, 0)
        self.put_object("n0", 4, 4, 1, "single-numa-node", "pod", False)

    @rule(name=NAME, more=st.integers(0, 1))
    def put_node(self, name: str, more: int) -> None:
        self.cache.put_node(make_node(name, allocatable={**ROOM, "cpu": str(12 + more)}))

    @rule(name=NAME)
    def remove_node(self, name: str) -> None:
        self.cache.remove_node(name)

    @rule(name=NAME, one=LEFT, two=LEFT, gpus=LEFT, policy=POLICY, scope=SCOPE, prints=st.booleans())
    def put_object(
        self, name: str, one: int, two: int, gpus: int, policy: str, scope: str, prints: bool
    ) -> None:
        here = [pod.name for pod in self.placed.values() if pod.spec.node_name == name]
        attributes = {PRINT: of(*here[:2])} if prints else {}
        zones: list[Any] = [
            {"cpu": ("6", "5", str(left)), "memory": "32Gi", GPU: str(gpus)} for left in (one, two)
        ]
        if gpus == 4:
            zones.append({"cpu": "2", "memory": "1Gi"})
        self.cache.objects.put(topology(name, *zones, policy=policy, scope=scope, **attributes))

    @rule(name=NAME)
    def remove_object(self, name: str) -> None:
        self.cache.objects.remove(topology(name))

    @rule(uid=UID, number=TEMPLATE)
    def pod_is_placed(self, uid: str, number: int) -> None:
        if uid in self.placed:
            return
        pod, cycle = template(number, uid), CycleState()
        decision = self.remembering.decide(self.framework, pod, self.cache.snapshot(), cycle)
        if decision.node is not None:
            assert cycle.equivalence_class is not None
            self.placed[uid] = self.cache.assume_pod(pod, decision.node, cycle.equivalence_class.info(pod))

    @rule(uid=UID)
    def pod_is_started(self, uid: str) -> None:
        if uid in self.placed:
            self.placed[uid] = replace(self.placed[uid], status=convert(STARTED, PodStatus))
            self.cache.put_pod(self.placed[uid])

    @rule(uid=UID)
    def remove_pod(self, uid: str) -> None:
        if (pod := self.placed.pop(uid, None)) is not None:
            self.cache.remove_pod(pod)

    @rule(uid=UID, name=NAME, number=TEMPLATE)
    def pod_is_nominated(self, uid: str, name: str, number: int) -> None:
        if uid not in self.placed:
            self.cache.nominations.put(template(number, uid), name)

    @invariant()
    def both_engines_agree(self) -> None:
        snapshot = self.cache.snapshot()
        for number in range(5):
            pod = template(number, "new")
            decision = self.remembering.decide(self.framework, pod, snapshot)
            expected = self.plain.decide(self.other, pod, snapshot)
            assert outcome(decision) == outcome(expected)

    def teardown(self) -> None:
        self.cache.validate()


def outcome(decision: Decision) -> tuple[Any, ...]:
    """All that an attempt says, by node."""
    scores = {}
    if decision.scores is not None:
        for plugin, values in decision.scores.by_plugin.items():
            scores[plugin] = dict(zip(decision.feasible.names, values.tolist(), strict=True))
        scores["total"] = dict(zip(decision.feasible.names, decision.scores.totals.tolist(), strict=True))
    rows = decision.feasible.snapshot.row_of
    refused = {name: decision.diagnosis.of(row) for name, row in rows.items()}
    return sorted(decision.feasible.names), scores, refused, decision.message, evictions(decision)


def evictions(decision: Decision) -> Any:
    """What preemption answers, and whom it would evict where."""
    after = decision.post_filter
    if after is None:
        return None
    return after.status, {node: sorted(pod.name for pod in pods) for node, pods in after.tied().items()}


class RememberingAllocation(Remembering):
    strategy = "BalancedAllocation"


@pytest.mark.slow
@pytest.mark.hypothesis
@pytest.mark.parametrize("machine", [Remembering, RememberingAllocation])
def test_cached_results_equal_uncached_ones(machine: type[Remembering]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=8, stateful_step_count=20))
