"""A node that is heard of no more: it is tainted, and its pods move when they tolerate that no longer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moorage.client.kinds import CORE_EVENT, DAEMON_SET, DEPLOYMENT, NODE, POD
from moorage_cluster.local import LocalSettings
from moorage_cluster.nodes.settings import NodeTemplate
from tests.up.harness import ClusterHarness
from tests.up.objects import Manifest, pod, workload

HEARTBEATS = "moorage.io/heartbeats"
GRACE_SECONDS = 50
"""How long a node may be silent: Kubernetes' own."""
UNREACHABLE = {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}


@pytest.fixture
def harness() -> Iterator[ClusterHarness]:
    with ClusterHarness(LocalSettings(nodes=3, template=NodeTemplate(zones=1))) as harness:
        yield harness


def tolerating(seconds: int | None) -> list[Manifest]:
    """A toleration of silent nodes, for so long or for ever."""
    toleration: Manifest = {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
    }
    return [toleration if seconds is None else {**toleration, "tolerationSeconds": seconds}]


def test_a_node_whose_heartbeats_stop(harness: ClusterHarness) -> None:
    harness.create(
        DEPLOYMENT, workload("Deployment", "quick", replicas=3, pods={"tolerations": tolerating(30)})
    )
    harness.create(DEPLOYMENT, workload("Deployment", "usual", replicas=3))
    harness.create(DAEMON_SET, workload("DaemonSet", "agent"))
    harness.create(POD, pod("faithful", tolerations=tolerating(None), nodeName="node-1"))
    harness.advance(10)
    for app in ("quick", "usual", "agent"):
        assert sorted(harness.nodes_of(app).values()) == ["node-0", "node-1", "node-2"]

    harness.patch(NODE, "node-1", {"metadata": {"annotations": {HEARTBEATS: "stopped"}}})
    harness.advance(GRACE_SECONDS - 15)
    assert harness.taints("node-1") == set()
    harness.advance(25)
    ready = harness.condition(harness.get(NODE, "node-1"), "Ready")
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert harness.taints("node-1") == UNREACHABLE
    assert "NodeNotReady" in [reason for reason, _ in harness.events("node-1")]
    for name, node in harness.nodes_of("usual").items():
        assert harness.condition(harness.get(POD, name), "Ready")["status"] == str(node != "node-1")

    harness.advance(40)
    assert sorted(set(harness.nodes_of("quick").values())) == ["node-0", "node-2"]
    assert len(harness.nodes_of("quick")) == 3
    assert "node-1" in harness.nodes_of("usual").values()
    harness.advance(300)
    assert sorted(set(harness.nodes_of("usual").values())) == ["node-0", "node-2"]
    assert len(harness.nodes_of("usual")) == 3
    assert harness.nodes_of("faithful") == {"faithful": "node-1"}
    assert "node-1" in harness.nodes_of("agent").values()

    harness.patch(NODE, "node-1", {"metadata": {"annotations": {HEARTBEATS: None}}})
    harness.advance(30)
    assert harness.condition(harness.get(NODE, "node-1"), "Ready")["status"] == "True"
    assert harness.taints("node-1") == set()
    gone = [each for each in harness.list(POD, "default") if "deletionTimestamp" in each["metadata"]]
    assert gone == []
    assert harness.condition(harness.get(POD, "faithful"), "Ready")["status"] == "True"
    assert len(harness.nodes_of("agent")) == 3


def test_a_node_that_is_deleted(harness: ClusterHarness) -> None:
    harness.create(DEPLOYMENT, workload("Deployment", "web", replicas=3))
    harness.create(DAEMON_SET, workload("DaemonSet", "agent"))
    harness.advance(10)
    harness.delete(NODE, "node-2")
    harness.advance(120)
    assert sorted(set(harness.nodes_of("web").values())) == ["node-0", "node-1"]
    assert len(harness.nodes_of("web")) == 3
    assert sorted(harness.nodes_of("agent").values()) == ["node-0", "node-1"]
    assert {each["involvedObject"]["kind"] for each in harness.list(CORE_EVENT)} >= {"Node", "Pod"}
