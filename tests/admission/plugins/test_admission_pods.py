"""DefaultTolerationSeconds, RuntimeClass, PodTopologyLabels and TaintNodesByCondition."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.admission.plugins import default_toleration_seconds, pod_topology_labels, runtime_class
from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.admission import taint_nodes_by_condition
from tests.admission.harness import World, named, pod, refused, write

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def five_minutes(key: str) -> Manifest:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ([], [NOT_READY, UNREACHABLE]),
        ([{"key": "x", "operator": "Exists"}], [NOT_READY, UNREACHABLE]),
        ([{"operator": "Exists"}], []),
        ([{"operator": "Exists", "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
        ([{"key": NOT_READY, "operator": "Exists"}], [UNREACHABLE]),
        ([{"key": UNREACHABLE, "effect": "NoExecute", "tolerationSeconds": 1}], [NOT_READY]),
        ([{"key": UNREACHABLE, "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
    ],
)
def test_pods_tolerate_a_silent_node_for_a_while(given: list[Manifest], added: list[str]) -> None:
    attributes = write(pod(tolerations=given) if given else pod())
    default_toleration_seconds.admit(attributes, World())
    expected = [*given, *(five_minutes(key) for key in added)]
    assert attributes.obj["spec"].get("tolerations", []) == expected
    default_toleration_seconds.admit(attributes, World())
    assert attributes.obj["spec"].get("tolerations", []) == expected


SANDBOX = named(
    "sandbox",
    overhead={"podFixed": {"cpu": "250m"}},
    scheduling={"nodeSelector": {"runtime": "sandbox"}, "tolerations": [{"key": "s", "operator": "Exists"}]},
)
RUNTIMES = World(runtime_classes=[SANDBOX, named("light")])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {}),
        ({"runtimeClassName": "light"}, {}),
        (
            {"runtimeClassName": "sandbox"},
            {
                "overhead": {"cpu": "250m"},
                "nodeSelector": {"runtime": "sandbox"},
                "tolerations": [{"key": "s", "operator": "Exists"}],
            },
        ),
        (
            {
                "runtimeClassName": "sandbox",
                "overhead": {"cpu": "0.25"},
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "s", "operator": "Equal", "value": "v"}, {"key": "t"}],
            },
            {
                "overhead": {"cpu": "250m"},
                "nodeSelector": {"disk": "ssd", "runtime": "sandbox"},
                "tolerations": [{"key": "t"}, {"key": "s", "operator": "Exists"}],
            },
        ),
    ],
)
def test_a_runtime_class_is_merged(spec: Manifest, expected: Manifest) -> None:
    attributes = write(pod(**spec))
    runtime_class.admit(attributes, RUNTIMES)
    attributes.obj["spec"].pop("containers")
    attributes.obj["spec"].pop("runtimeClassName", None)
    assert attributes.obj["spec"] == expected
    assert SANDBOX["overhead"] == {"podFixed": {"cpu": "250m"}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"runtimeClassName": "nope"}, 'pod rejected: RuntimeClass "nope" not found'),
        (
            {"runtimeClassName": "sandbox", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"runtimeClassName": "light", "overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            {"runtimeClassName": "sandbox", "nodeSelector": {"runtime": "x"}},
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = sandbox; "
            "pod.spec.nodeSelector[runtime] = x",
        ),
    ],
)
def test_what_contradicts_a_runtime_class_is_refused(spec: Manifest, why: str) -> None:
    error = refused(runtime_class.admit, write(pod(**spec)), RUNTIMES)
    assert error.message == f'pods "p" is forbidden: {why}'


def noexec(seconds: int | None, **fields: Any) -> Manifest:
    toleration = {"key": "k", "operator": "Exists", "effect": "NoExecute", **fields}
    return toleration if seconds is None else {**toleration, "tolerationSeconds": seconds}


@pytest.mark.parametrize(
    ("mine", "theirs", "merged"),
    [
        ([noexec(5)], [noexec(5)], [noexec(5)]),
        ([noexec(5)], [noexec(10)], [noexec(10)]),
        ([noexec(None)], [noexec(10)], [noexec(None)]),
        ([noexec(5)], [{"operator": "Exists"}], [{"operator": "Exists"}]),
        ([noexec(5)], [noexec(5, effect="NoSchedule")], [noexec(5), noexec(5, effect="NoSchedule")]),
        (
            [{"key": "k", "operator": "Equal", "value": "a"}],
            [{"key": "k", "value": "a"}, {"key": "k", "value": "b"}],
            [{"key": "k", "value": "a"}, {"key": "k", "value": "b"}],
        ),
    ],
)
def test_of_two_tolerations_the_wider_stays(
    mine: list[Manifest], theirs: list[Manifest], merged: list[Manifest]
) -> None:
    harness = World(runtime_classes=[named("r", scheduling={"tolerations": theirs})])
    attributes = write(pod(runtimeClassName="r", tolerations=mine))
    runtime_class.admit(attributes, harness)
    assert attributes.obj["spec"]["tolerations"] == merged


ZONED = {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1"}


def node(name: str, labels: dict[str, str]) -> Manifest:
    return {"metadata": {"name": name, "labels": labels}}


NODES = World(nodes=[node("zoned", {**ZONED, "kubernetes.io/hostname": "zoned"}), node("plain", {})])


def test_topology_labels_are_zone_and_region() -> None:
    assert pod_topology_labels.topology_labels(node("n", {**ZONED, "x": "y"})) == ZONED
    assert pod_topology_labels.topology_labels(named("n")) == {}


@pytest.mark.parametrize(
    ("target", "labels"),
    [
        ({"kind": "Node", "name": "zoned"}, ZONED),
        ({"kind": "Node", "name": "plain"}, None),
        ({"kind": "Node", "name": "gone"}, None),
        ({"kind": "Machine", "name": "zoned"}, None),
    ],
)
def test_a_binding_carries_the_nodes_topology(target: Manifest, labels: Manifest | None) -> None:
    attributes = write(named("p", "here", target=target), subresource="binding")
    pod_topology_labels.admit_binding(attributes, NODES)
    assert attributes.obj["metadata"].get("labels") == labels


def test_a_pod_created_on_a_node_carries_its_topology() -> None:
    attributes = write(pod(nodeName="zoned"))
    attributes.obj["metadata"]["labels"] = {"app": "web", "topology.kubernetes.io/zone": "wrong"}
    pod_topology_labels.admit_pod(attributes, NODES)
    assert attributes.obj["metadata"]["labels"] == {"app": "web", **ZONED}
    pending = write(pod())
    pod_topology_labels.admit_pod(pending, NODES)
    assert "labels" not in pending.obj["metadata"]


@pytest.mark.parametrize(
    "given", [[], [{"key": "x", "effect": "NoSchedule"}], [{"key": NOT_READY, "effect": "NoExecute"}]]
)
def test_a_new_node_is_not_ready(given: list[Manifest]) -> None:
    attributes = write(named("n", spec={"taints": list(given)} if given else {}), "/nodes", namespaced=False)
    expected = [*given, {"key": NOT_READY, "effect": "NoSchedule"}]
    for _ in range(2):
        taint_nodes_by_condition.admit(attributes, World())
        assert attributes.obj["spec"]["taints"] == expected
