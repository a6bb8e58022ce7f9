"""Pods that differ only in their volume claims share an equivalence class, and no answer about the claims."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.cluster.object_tables import Objects
from moorage.engine.engine import Engine
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.dependencies import NODE, DependsOn
from moorage.framework.interface.filter_result import ALL, FilterResult, refuse_where
from moorage.framework.interface.nodes import Nodes
from tests.builders import HOSTNAME, ZONE, make_framework, make_node, make_pod
from tests.framework.cache.test_result_cache import (
    NODE_NAMES,
    UIDS,
    RememberingCluster,
    count_calls,
)
from tests.framework.helpers import framework_of
from tests.plugins.volumes.volume_objects import (
    DRIVER,
    Manifest,
    attachment,
    capacity,
    claim,
    csi,
    csi_driver,
    csi_node,
    in_zone,
    storage_class,
    volume,
)
from tests.strategies import examples, one_of

NUMBERS = range(4)
"""Claim c0 may have the volume v0, and so on."""
EBS: Manifest = {"awsElasticBlockStore": {"volumeID": "disk"}}
MIGRATED = "kubernetes.io/aws-ebs"

STORAGE: tuple[Object, ...] = (
    *(claim(f"c{number}", volume=f"v{number}") for number in NUMBERS),
    *(claim(f"c{number}", volume=f"v{number}", accessModes=["ReadWriteOncePod"]) for number in NUMBERS),
    *(claim(f"c{number}") for number in NUMBERS),
    *(volume(f"v{number}", csi=csi(f"h{number}")) for number in NUMBERS),
    *(volume(f"v{number}", csi=csi("h0"), nodeAffinity=in_zone("a")) for number in NUMBERS),
    *(volume(f"v{number}", labels={ZONE: "b"}, **EBS) for number in NUMBERS),
    *(volume(f"v{number}", **EBS) for number in NUMBERS),
    storage_class(),
    storage_class(provisioner=DRIVER, zones=["a"]),
    storage_class(waits=False),
    csi_driver(),
    capacity("room", "2Gi", "a"),
    *(csi_node(name, {DRIVER: 1}) for name in NODE_NAMES),
    *(csi_node(name, {DRIVER: 2, "ebs.csi.aws.com": 1}, migrated=MIGRATED) for name in NODE_NAMES),
    *(csi_node(name) for name in NODE_NAMES),
    *(attachment(f"a{number}", NODE_NAMES[number], f"v{number}") for number in NUMBERS),
)
ITEM = one_of(*STORAGE)


def pod_with(*claims: str, name: str = "pod", uid: str = "", **spec: Any) -> Pod:
    """A pod of a template: its volumes have the same names as those of others, and claims of its own."""
    volumes = [
        {"name": f"data-{number}", "persistentVolumeClaim": {"claimName": each}}
        for number, each in enumerate(claims)
    ]
    return make_pod(name, uid=uid, volumes=volumes, **spec)


class ClusterWithVolumes(RememberingCluster):
    """The same where pods have claims, which are bound or not, and volumes, classes and limits change."""

    @initialize(chosen=st.permutations(STORAGE))
    def some_nodes_are_there(self, chosen: list[Object]) -> None:
        self.templates = [
            {"requests": {"cpu": "1"}},
            {"requests": {"cpu": "2"}, "priority": 10},
            {"labels": {"app": "a"}},
        ]
        for number, name in enumerate(NODE_NAMES[:4]):
            self.cache.put(make_node(name, labels={HOSTNAME: name, ZONE: "ab"[number % 2]}))
        for number in NUMBERS:
            self.cache.put(claim(f"c{number}", volume=f"v{number}"))
            self.cache.put(volume(f"v{number}", csi=csi(f"h{number}")))
        for item in chosen[:4]:
            self.cache.put(item)

    @rule(item=ITEM)
    def storage_comes_or_changes(self, item: Object) -> None:
        self.cache.put(item)

    @rule(item=ITEM)
    def storage_goes(self, item: Object) -> None:
        self.cache.remove(item)

    def _pod(self, uid: str, template: int) -> Pod:
        number = UIDS.index(uid) if uid in UIDS else 1
        names = [f"c{number % len(NUMBERS)}", f"c{number // 2 % len(NUMBERS)}"][: 1 + number % 2]
        return pod_with(*dict.fromkeys(names), name=f"pod-{uid}", uid=uid, **self.templates[template])


@pytest.mark.slow
def test_what_is_remembered_of_pods_with_claims_is_what_would_be_worked_out_again() -> None:
    run_state_machine_as_test(ClusterWithVolumes, settings=examples(25, stateful_step_count=20))


def _bound(number: int) -> tuple[Object, Object]:
    return claim(f"c{number}", volume=f"v{number}"), volume(f"v{number}", csi=csi(f"h{number}"))


def test_pods_that_differ_in_their_claims_share_the_results_of_other_plugins() -> None:
    framework, engine, called = make_framework(), Engine(), list[str]()
    cache = Cache([make_node("a"), make_node("b"), *_bound(0), *_bound(1), *_bound(2)])
    for call in framework.at("filter"):
        count_calls(call, called)
    for number in range(3):
        assert engine.decide(framework, pod_with(f"c{number}"), cache.snapshot()).node
    assert Counter(called)["NodeResourcesFit"] == 1
    assert not {"VolumeBinding", "NodeVolumeLimits", "VolumeZone"} & set(called)  # They skip these pods.


def test_an_assumed_pod_holds_its_own_claims() -> None:
    framework, engine = make_framework(), Engine()
    cache = Cache([make_node("a"), *_bound(0), *_bound(1)])
    for number in range(2):
        pod, cycle = pod_with(f"c{number}", name=f"p{number}", uid=f"u{number}"), CycleState()
        engine.decide(framework, pod, cache.snapshot(), cycle)
        assert cycle.equivalence_class is not None
        cache.assume_pod(pod, "a", cycle.equivalence_class.info(pod))
    assert cache.snapshot().claims[0] == {"default/c0", "default/c1"}
    cache.validate()


def test_preemption_for_pods_with_bound_claims_evaluates_single_nodes() -> None:
    framework, cycle = make_framework(), CycleState()
    cache = Cache([make_node("a"), make_node("b"), *_bound(0)])
    Engine().decide(framework, pod_with("c0", requests={"cpu": "100"}), cache.snapshot(), cycle)
    assert framework.single_node_filters(cycle) is not None


def test_nodes_near_their_limit_with_a_nominated_pod_are_not_skipped() -> None:
    """The volumes of nominated pods count, too."""
    framework = make_framework()
    cache = Cache([make_node("a"), csi_node("a", {DRIVER: 1}), *_bound(0), *_bound(1)])
    cache.nominations.put(pod_with("c0", name="first", uid="first", priority=9), "a")
    decision = Engine().decide(framework, pod_with("c1"), cache.snapshot())
    assert decision.node is None
    assert "node(s) exceed max volume count" in decision.message


class ReadsClaims:
    """A plugin from outside that accepts one claim, and declares what its answers depend on."""

    name = "ReadsClaims"

    def depends_on(self, pod: Pod, objects: Objects) -> DependsOn | None:
        return NODE

    def filter(self, cycle: CycleState, pod: Pod, nodes: Nodes) -> FilterResult:
        wanted = pod.spec.volumes[0].persistent_volume_claim
        if wanted is not None and wanted.claim_name == "c1":
            return ALL
        return refuse_where(np.ones(len(nodes), bool), "another claim")


def test_answers_of_plugins_from_outside_are_not_shared_by_pods_with_other_claims() -> None:
    framework, engine = framework_of(ReadsClaims()), Engine()
    snapshot = Cache([make_node("a"), make_node("b")]).snapshot()
    decisions = [engine.decide(framework, pod_with(f"c{number}"), snapshot) for number in range(3)]
    assert [decision.node is not None for decision in decisions] == [False, True, False]
