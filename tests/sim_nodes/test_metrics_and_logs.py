from __future__ import annotations

from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError
from moorage.client.kinds import NAMESPACE, POD
from moorage_cluster.nodes.logs import Logs
from moorage_cluster.nodes.settings import NodeTemplate
from tests.sim_nodes.harness import NodesHarness

TEMPLATE = NodeTemplate(reserved={"cpu": "100m", "memory": "256Mi"})


def usages(metrics: Manifest) -> dict[str, Any]:
    return {
        item["metadata"]["name"]: {each["name"]: each["usage"] for each in item["containers"]}
        for item in metrics["items"]
    }


def test_what_pods_use() -> None:
    with NodesHarness(TEMPLATE) as harness:
        harness.create(NAMESPACE, {"metadata": {"name": "other"}})
        harness.pod("said", says={"usage": "cpu=200m,memory=100Mi"})
        harness.pod("throttled", limits={"cpu": "100m"}, says={"usage": "cpu=2,memory=1Mi"})
        harness.pod("grows", says={"usage": "cpu=1m,memory=10Mi+1Mi/s"})
        harness.pod("waits", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}])
        harness.advance(13)
        metrics = harness.nodes.pod_metrics()
        assert (metrics["kind"], metrics["apiVersion"]) == ("PodMetricsList", "metrics.k8s.io/v1beta1")
        assert usages(metrics) == {
            "said": {"main": {"cpu": "200000000n", "memory": "102400Ki"}},
            "throttled": {"main": {"cpu": "100000000n", "memory": "1024Ki"}},
            "grows": {"main": {"cpu": "1000000n", "memory": "20480Ki"}},
        }
        assert metrics["items"][0]["timestamp"] == "2026-03-01T12:00:13Z"
        assert metrics["items"][0]["metadata"]["namespace"] == "default"
        assert harness.nodes.pod_metrics("other")["items"] == []
        assert len(harness.nodes.pod_metrics("default")["items"]) == 3


def test_what_nodes_use() -> None:
    with NodesHarness(TEMPLATE, count=2) as harness:
        harness.pod("a", says={"usage": "cpu=200m,memory=100Mi"})
        harness.advance(5)
        metrics = harness.nodes.node_metrics()
        assert metrics["kind"] == "NodeMetricsList"
        found = {item["metadata"]["name"]: item["usage"] for item in metrics["items"]}
        assert found == {
            "node-0": {"cpu": "250000000n", "memory": f"{(100 + 128) * 1024}Ki"},
            "node-1": {"cpu": "50000000n", "memory": f"{128 * 1024}Ki"},
        }
        harness.nodes.stop_heartbeats("node-1")
        assert [item["metadata"]["name"] for item in harness.nodes.node_metrics()["items"]] == ["node-0"]


def test_what_containers_write() -> None:
    with NodesHarness(TEMPLATE) as harness:
        logs: Any = Logs(harness.now)
        harness.pod("a", says={"duration": "5s", "exit-code": "1"})
        with pytest.raises(
            ApiError, match='container "main" in pod "a" is waiting to start: ContainerCreating'
        ):
            logs(harness.get(POD, "a"), {})
        harness.advance(5)
        pod = harness.get(POD, "a")
        assert logs(pod, {}).decode().splitlines() == [
            "2026-03-01T12:00:03Z simulated: container main of pod a started",
            "2026-03-01T12:00:03Z simulated: image registry.example/app:1",
            "2026-03-01T12:00:04Z simulated: ready to serve",
        ]
        assert logs(pod, {"tailLines": "1"}).count(b"\n") == 1
        assert logs(pod, {"tailLines": "0"}) == b""
        with pytest.raises(ApiError, match="container other is not valid for pod a"):
            logs(pod, {"container": "other"})
        with pytest.raises(ApiError, match='previous terminated container "main" in pod "a" not found'):
            logs(pod, {"previous": "true"})
        harness.advance(5)
        ended = logs(harness.get(POD, "a"), {"previous": "true"}).decode().splitlines()
        assert ended[-1] == "2026-03-01T12:00:08Z simulated: ended with exit code 1 (Error)"
