"""What the versions decide differently about single pods: the lines of the table, and the gates beside it."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage.config.defaults import default_plugins
from moorage.emulation.kubernetes_version import V1_36, V1_37, KubernetesVersion
from moorage.engine.decision import Decision
from moorage.sim.deciding import decide
from tests.builders import container, expression, make, make_namespace, make_node, make_pod, pod_term

VERSIONS = pytest.mark.parametrize("version", [V1_36, V1_37], ids=lambda version: f"v{version.minor}")
NO_CPU = "0/1 nodes are available: 1 Insufficient cpu."
NO_VICTIMS = "0/1 nodes are available: 1 No preemption victims found for incoming pod."
MEGABYTE = 1024 * 1024


def large_pod(**spec: Any) -> Decision:
    """A pod that does not fit beside the one on node `n`."""
    version = spec.pop("version")
    standing = make_pod("standing", on="n", requests={"cpu": "3"})
    wanted = make_pod("new", requests={"cpu": "3"}, **spec)
    return decide(wanted, [make_node("n"), standing], version=version)


@VERSIONS
def test_a_pod_that_preempts_says_so(version: KubernetesVersion) -> None:
    said = " preemption: found a potential placement for pod on node n, preempting 1 victims"
    decision = large_pod(priority=10, version=version)
    assert decision.message == NO_CPU + (said if version is V1_37 else "")
    assert decision.post_filter is not None
    assert decision.post_filter.nominated_node == "n"


@VERSIONS
def test_claims_that_are_not_there_are_not_mentioned(version: KubernetesVersion) -> None:
    said = "" if version is V1_37 else "no new claims to deallocate, "
    assert large_pod(version=version).message == f"{NO_CPU} {said}preemption: {NO_VICTIMS}"


@VERSIONS
def test_image_volumes_are_among_the_images_of_a_pod(version: KubernetesVersion) -> None:
    image = (["data:1"], 2000 * MEGABYTE)
    nodes = [make_node("here", images=[image]), make_node("elsewhere")]
    mounted = {"name": "data", "image": {"reference": "data:1"}}
    decision = decide(make_pod("new", containers=[container()], volumes=[mounted]), nodes, version=version)
    # Half of the nodes have it: 1000 MB count, of 1000 MB for each image but for the first 23.
    expected = 100 * (1000 - 23) // (2000 - 23) if version is V1_37 else 100
    assert decision.scores_of("here")["ImageLocality"] == expected


def csi_cluster(*installed: str) -> list[Manifest]:
    """A driver that must be on nodes, a volume of it, and nodes of which some have the driver."""
    named = {"driver": "disks.example.com", "volumeHandle": "v"}
    return [
        {
            "kind": "CSIDriver",
            "metadata": {"name": "disks.example.com"},
            "spec": {"preventPodSchedulingIfMissing": True},
        },
        {
            "kind": "PersistentVolume",
            "metadata": {"name": "v"},
            "spec": {"csi": named, "claimRef": {"namespace": "default", "name": "c"}},
        },
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "c",
                "namespace": "default",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {"volumeName": "v"},
            "status": {"phase": "Bound"},
        },
        *(
            {
                "kind": "CSINode",
                "metadata": {"name": name},
                "spec": {"drivers": [{"name": "disks.example.com", "nodeID": name}]},
            }
            for name in installed
        ),
    ]


MISSING = "disks.example.com CSI driver is not installed on the node"
SCALING = {"VolumeLimitScaling": True}


@pytest.mark.parametrize(
    ("version", "feasible"),
    [
        (V1_36, ["a", "b"]),
        (V1_36.with_gates(SCALING), ["a"]),
        (V1_37, ["a"]),
        (V1_37.with_gates({"VolumeLimitScaling": False}), ["a", "b"]),
    ],
    ids=["v1.36", "v1.36 with the gate", "v1.37", "v1.37 without the gate"],
)
def test_nodes_without_a_driver_that_must_be_there(version: KubernetesVersion, feasible: list[str]) -> None:
    nodes = [make_node("a"), make_node("b")]
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
    pod = make_pod("new", volumes=[claim])
    objects = [*nodes, *(make(each) for each in csi_cluster("a"))]
    decision = decide(pod, objects, version=version)
    assert sorted(decision.feasible.names) == feasible
    if len(feasible) == 1:
        nowhere = decide(pod, [*nodes, *(make(each) for each in csi_cluster())], version=version)
        assert nowhere.message.startswith(f"0/2 nodes are available: 2 {MISSING}.")


@VERSIONS
@pytest.mark.parametrize(
    ("requirement", "of_1_36", "of_1_37"),
    [
        (expression("team", "NotIn", "blue"), [], ["there"]),
        (expression("team", "DoesNotExist"), [], ["there"]),
        (expression("team", "In", "blue"), ["here"], ["here"]),
    ],
    ids=["NotIn", "DoesNotExist", "In"],
)
def test_negative_namespace_selectors_select_namespaces(
    requirement: Manifest, of_1_36: list[str], of_1_37: list[str], version: KubernetesVersion
) -> None:
    """A pod in namespace `blue`, which has the label; the new pod wants to be apart from what is selected."""
    selector = {"matchExpressions": [requirement]}
    term = pod_term("host", {"matchLabels": {"app": "x"}}, namespace_selector=selector)
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    objects = [
        make_namespace("default"),
        make_namespace("blue", team="blue"),
        make_node("here", labels={"host": "1"}),
        make_node("there", labels={"host": "2"}),
        make_pod("old", namespace="blue", labels={"app": "x"}, on="there"),
        make_pod("own", labels={"app": "x"}, on="here"),
    ]
    decision = decide(make_pod("new", affinity=affinity), objects, version=version)
    assert decision.feasible.names == (of_1_37 if version is V1_37 else of_1_36)


def test_the_first_filters_change_places() -> None:
    def first(version: KubernetesVersion) -> list[str]:
        return [each.name for each in default_plugins(version).multi_point.enabled[:5]]

    head = ["SchedulingGates", "PrioritySort"]
    assert first(V1_36) == [*head, "NodeUnschedulable", "NodeName", "TaintToleration"]
    assert first(V1_37) == [*head, "NodeName", "NodeUnschedulable", "TaintToleration"]


@pytest.mark.parametrize(
    ("version", "scores"),
    [
        (V1_36, False),
        (V1_36.with_gates({"StorageCapacityScoring": True}), True),
        (V1_37, True),
        (V1_37.with_gates({"StorageCapacityScoring": False}), False),
    ],
    ids=["v1.36", "v1.36 with the gate", "v1.37", "v1.37 without the gate"],
)
def test_volume_binding_scores_every_pod(version: KubernetesVersion, scores: bool) -> None:
    decision = decide(make_pod("new"), [make_node("a"), make_node("b")], version=version)
    assert decision.scores_of("a").get("VolumeBinding") == (0 if scores else None)
