from __future__ import annotations

from typing import Any

import pytest

from moorage.client.kinds import NODE
from moorage_cluster.nodes.settings import NodeTemplate
from tests.sim_nodes.harness import NodesHarness

TEMPLATE = NodeTemplate(
    cpu="8",
    memory="8Gi",
    pods=3,
    reserved={},
    resources={"example.com/gpu": "2"},
    labels={"disk": "ssd"},
)


def affinity(value: str) -> dict[str, Any]:
    expressions = [{"key": "disk", "operator": "In", "values": [value]}]
    terms = [{"matchExpressions": expressions}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("pod", "reason", "message"),
    [
        pytest.param(
            {"requests": {"cpu": "1"}},
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 1000, used: 7500, capacity: 8000",
            id="cpu",
        ),
        pytest.param(
            {"requests": {"memory": "8Gi"}},
            "OutOfmemory",
            "Node didn't have enough resource: memory, requested: 8589934592, used: 1073741824, "
            "capacity: 8485076992",
            id="memory",
        ),
        pytest.param(
            {"requests": {"ephemeral-storage": "100Gi"}},
            "OutOfephemeral-storage",
            "Node didn't have enough resource: ephemeral-storage, requested: 107374182400, used: 0, "
            "capacity: 96636764000",
            id="ephemeral-storage",
        ),
        pytest.param(
            {"requests": {"example.com/gpu": "2"}, "limits": {"example.com/gpu": "2"}},
            "OutOfexample.com/gpu",
            "Node didn't have enough resource: example.com/gpu, requested: 2, used: 1, capacity: 2",
            id="extended-resource",
        ),
        pytest.param(
            {"node_selector": {"disk": "hdd"}},
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
            id="node-selector",
        ),
        pytest.param(
            {"affinity": affinity("hdd")},
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
            id="node-affinity",
        ),
        pytest.param(
            {"container": {"ports": [{"containerPort": 80, "hostPort": 8080}]}},
            "NodePorts",
            "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
            id="host-port",
        ),
    ],
)
def test_a_pod_that_does_not_fit_is_refused(pod: dict[str, Any], reason: str, message: str) -> None:
    if "node_selector" in pod:
        pod = {"nodeSelector": pod["node_selector"]}
    with NodesHarness(TEMPLATE) as harness:
        harness.pod(
            "first",
            requests={"cpu": "7500m", "memory": "1Gi", "example.com/gpu": "1"},
            limits={"example.com/gpu": "1"},
            container={"ports": [{"containerPort": 80, "hostPort": 8080}]},
        )
        harness.pod("second", **pod)
        harness.advance(5)
        status = harness.status("second")
        assert (status["phase"], status["reason"]) == ("Failed", reason)
        assert status["message"] == f"Pod was rejected: {message}"
        assert "containerStatuses" not in status
        assert harness.phase("first") == "Running"
        assert harness.events("second") == [(reason, message)]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({"requests": {"cpu": "500m"}}, id="exactly-what-is-left"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, id="node-selector"),
        pytest.param({"affinity": affinity("ssd")}, id="node-affinity"),
        pytest.param(
            {"requests": {"example.com/tpu": "9"}, "limits": {"example.com/tpu": "9"}},
            id="a-resource-that-the-node-does-not-know",
        ),
        pytest.param({"container": {"ports": [{"containerPort": 80, "hostPort": 8081}]}}, id="free-port"),
    ],
)
def test_a_pod_that_fits_is_taken(pod: dict[str, Any]) -> None:
    with NodesHarness(TEMPLATE) as harness:
        harness.pod(
            "first", requests={"cpu": "7500m"}, container={"ports": [{"containerPort": 80, "hostPort": 8080}]}
        )
        harness.pod("second", **pod)
        harness.advance(5)
        assert harness.phase("second") == "Running"


def test_a_full_node_takes_no_more_pods_until_one_ends() -> None:
    with NodesHarness(TEMPLATE) as harness:
        harness.pod("short", says={"duration": "10s"}, restartPolicy="Never")
        for name in ("b", "c", "d"):
            harness.pod(name)
        status = harness.status("d")
        assert status["reason"] == "OutOfpods"
        assert status["message"].endswith("resource: pods, requested: 1, used: 3, capacity: 3")
        harness.advance(15)
        assert harness.phase("short") == "Succeeded"
        harness.pod("e")
        harness.advance(5)
        assert harness.phase("e") == "Running"


def test_a_taint_that_ends_pods_keeps_new_ones_away() -> None:
    with NodesHarness(TEMPLATE) as harness:
        taint = {"key": "down", "effect": "NoExecute"}
        harness.patch(NODE, "node-0", {"spec": {"taints": [taint]}})
        harness.pod("a")
        status = harness.status("a")
        assert status["reason"] == "TaintToleration"
        assert status["message"] == (
            "Pod was rejected: Predicate TaintToleration failed: "
            "node(s) had taints that the pod didn't tolerate"
        )
        harness.pod("b", tolerations=[{"key": "down", "operator": "Exists"}])
        harness.advance(5)
        assert harness.phase("b") == "Running"
