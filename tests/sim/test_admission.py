"""Pods from manifests: what an API server would have made of them before a scheduler saw them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage import InputError, Pod, decide
from moorage.api.base import Object
from moorage.api.manifests import Manifest
from moorage.sim.admission import Admission
from tests.builders import container, make_pod, node, pod, pod_term, spread

NODE = node("a", allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"})
CLASSES: list[Manifest] = [
    {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"},
    {"kind": "PriorityClass", "metadata": {"name": "usual"}, "value": 7, "globalDefault": True},
]
RUNTIME: Manifest = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "vm"},
    "handler": "vm",
    "overhead": {"podFixed": {"cpu": "3"}},
    "scheduling": {
        "nodeSelector": {"runtime": "vm"},
        "tolerations": [{"key": "vm", "operator": "Exists", "effect": "NoSchedule"}],
    },
}


def limits(**item: Any) -> Manifest:
    spec = {"limits": [{"type": "Container", **item}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "bounds"}, "spec": spec}


def new_pod(name: str = "p", resources: Manifest | None = None, **spec: Any) -> Manifest:
    """A pod as users write it; `spec` as the API has it, in snake case."""
    spec.setdefault("containers", [container(image="registry.example/x:1", resources=resources)])
    manifest = pod(name, **spec)
    del manifest["status"]
    return manifest


def admitted(manifest: Manifest, *cluster: Manifest) -> Pod:
    (found,) = Admission([(each, "") for each in cluster]).objects([(manifest, "")])
    assert isinstance(found, Pod)
    return found


def refused(manifest: Manifest, *cluster: Manifest) -> str:
    with pytest.raises(InputError) as error:
        admitted(manifest, *cluster)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_limits_are_requests_where_there_are_none() -> None:
    asks = new_pod(resources={"limits": {"cpu": "5"}})
    assert decide(asks, [NODE]).message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert decide(new_pod(resources={"limits": {"cpu": "4"}}), [NODE]).node == "a"


def test_limit_ranges_give_requests_and_refuse_what_is_too_much() -> None:
    decision = decide(new_pod(), [NODE, limits(defaultRequest={"cpu": "5"})])
    assert decision.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    too_much = new_pod("big", {"limits": {"cpu": "2"}})
    assert refused(too_much, limits(max={"cpu": "1"})) == (
        'pods "big" is forbidden: maximum cpu usage per Container is 1, but limit is 2'
    )
    elsewhere = {**limits(max={"cpu": "1"}), "metadata": {"name": "bounds", "namespace": "other"}}
    assert admitted(too_much, elsewhere).name == "big"


@pytest.mark.parametrize(
    ("class_name", "priority", "policy"),
    [
        ("high", 1000, "Never"),
        ("system-node-critical", 2_000_001_000, "PreemptLowerPriority"),
        ("system-cluster-critical", 2_000_000_000, "PreemptLowerPriority"),
        (None, 7, "PreemptLowerPriority"),
    ],
)
def test_priorities_come_from_classes(class_name: str | None, priority: int, policy: str) -> None:
    found = admitted(new_pod(priority_class_name=class_name), *CLASSES)
    assert (found.priority, found.spec.preemption_policy) == (priority, policy)


def test_a_pod_of_a_higher_class_evicts_one_that_runs() -> None:
    running = new_pod("running", {"requests": {"cpu": "3"}}, on="a")
    important = new_pod("important", {"requests": {"cpu": "2"}}, priority_class_name="system-node-critical")
    found = decide(important, [NODE, running]).post_filter
    assert found is not None
    assert found.nominated_node == "a"


def test_a_runtime_class_brings_its_overhead_and_its_place() -> None:
    wide = new_pod(resources={"requests": {"cpu": "2"}}, runtime_class_name="vm")
    there = {**NODE, "metadata": {"name": "a", "labels": {"runtime": "vm"}}}
    tainted = {**there, "spec": {"taints": [{"key": "vm", "effect": "NoSchedule"}]}}
    assert decide(wide, [tainted, RUNTIME]).message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert decide(new_pod(runtime_class_name="vm"), [tainted, RUNTIME]).node == "a"
    assert decide(new_pod(runtime_class_name="vm"), [NODE, RUNTIME]).node is None


def test_ports_of_the_host_network_are_host_ports() -> None:
    def listening(name: str, **spec: Any) -> Manifest:
        ports = [{"containerPort": 8080}]
        containers = [container(image="registry.example/x:1", ports=ports)]
        return new_pod(name, containers=containers, host_network=True, **spec)

    decision = decide(listening("second"), [NODE, listening("first", on="a")])
    ports = "1 node(s) didn't have free ports for the requested pod ports"
    assert decision.message.startswith(f"0/1 nodes are available: {ports}")


def test_tolerations_and_selectors_are_filled_in() -> None:
    found = admitted(
        new_pod(
            labels={"app": "x", "version": "2"},
            affinity={
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        pod_term("zone", {"matchLabels": {"app": "x"}}, match_label_keys=["version"])
                    ]
                }
            },
            topology_spread_constraints=[
                spread("zone", {"matchLabels": {"app": "x"}}, match_label_keys=["version"])
            ],
        )
    )
    assert [(each.key, each.effect) for each in found.spec.tolerations] == [
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
    ]
    assert found.spec.affinity is not None
    assert found.spec.affinity.pod_anti_affinity is not None
    (term,) = found.spec.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
    assert term.label_selector is not None
    (merged,) = term.label_selector.match_expressions
    assert (merged.key, merged.operator, merged.values) == ("version", "In", ("2",))


@pytest.mark.parametrize(
    ("manifest", "line"),
    [
        (
            new_pod(priority_class_name="none"),
            'pods "p" is forbidden: no PriorityClass with name none was found',
        ),
        (
            new_pod(runtime_class_name="none"),
            'pods "p" is forbidden: pod rejected: RuntimeClass "none" not found',
        ),
        (new_pod(containers=[]), 'Pod "p" is invalid: spec.containers: Required value'),
        (
            new_pod(node_selektor={"a": "b"}),
            'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
            'unknown field "spec.nodeSelektor"',
        ),
    ],
)
def test_what_an_api_server_would_refuse(manifest: Manifest, line: str) -> None:
    assert refused(manifest) == line


def test_a_cluster_that_names_its_namespaces_has_no_others() -> None:
    known: Manifest = {"kind": "Namespace", "metadata": {"name": "known"}}
    assert admitted(new_pod(namespace="anywhere")).namespace == "anywhere"
    assert admitted(new_pod(namespace="known"), known).namespace == "known"
    assert admitted(new_pod(), known).namespace == "default"
    assert refused(new_pod(namespace="anywhere"), known) == 'namespaces "anywhere" not found'
    leaving = {**known, "status": {"phase": "Terminating"}}
    assert refused(new_pod(namespace="known"), leaving) == (
        'pods "p" is forbidden: unable to create new content in namespace known '
        "because it is being terminated"
    )


def test_a_pod_that_an_api_server_has_stored_is_taken_as_it_is() -> None:
    stored = pod("p", uid="1", containers=[container(resources={"limits": {"cpu": "5"}})])
    assert decide(stored, [NODE, limits(max={"cpu": "1"})]).node == "a"
    assert (
        decide(make_pod("p", containers=[container(resources={"limits": {"cpu": "5"}})]), [NODE]).node == "a"
    )


def test_a_status_and_times_that_were_written_down_are_kept() -> None:
    over: Manifest = {**new_pod(), "status": {"phase": "Succeeded"}}
    over["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = admitted(over)
    assert (found.finished, found.terminating, found.metadata.uid) == (True, True, "")


def test_pods_of_a_cluster_that_was_written_by_hand_are_new_too() -> None:
    full = new_pod("full", {"limits": {"cpu": "4"}}, on="a")
    assert decide(new_pod(resources={"requests": {"cpu": "1"}}), [NODE, full]).node is None


def test_the_node_that_a_pod_names_does_not_matter() -> None:
    nodes: list[Object | Manifest] = [NODE, node("b", labels={"disk": "ssd"})]
    on_a = new_pod(on="a", node_selector={"disk": "ssd"})
    assert decide(on_a, nodes).node == "b"
    assert decide(make_pod("p", on="a", node_selector={"disk": "ssd"}), nodes).node == "b"
    whole = make_pod("p", uid="1", on="a", requests={"cpu": "4"})
    assert decide(whole, [NODE, whole]).node == "a", "it does not stand in its own way"


def test_what_is_no_pod_is_rejected() -> None:
    with pytest.raises(InputError, match="pod: not the manifest of a Pod"):
        decide(NODE, [NODE])
    assert refused({"kind": "Pod", "metadata": 5}) == "Pod: metadata: expected `object`, got `int`"
    assert refused({"kind": "Pod"}) == "Pod: metadata.name: missing"
    looped: Manifest = new_pod()
    looped["spec"]["affinity"] = looped
    assert "cannot be written as JSON" in refused(looped)
    nameless = {**limits(), "metadata": {}}
    assert refused(new_pod(), nameless) == "LimitRange: metadata.name: missing"
