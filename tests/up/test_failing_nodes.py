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
def world() -> Iterator[ClusterHarness]:
    with ClusterHarness(LocalSettings(nodes=3, template=NodeTemplate(zones=1))) as world:
        yield world


def tolerating(seconds: int | None) -> list[Manifest]:
    """A toleration of silent nodes, for so long or for ever."""
    toleration: Manifest = {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
    }
    return [toleration if seconds is None else {**toleration, "tolerationSeconds": seconds}]


def test_a_node_whose_heartbeats_stop(world: ClusterHarness) -> None:
    world.create(
        DEPLOYMENT, workload("Deployment", "quick", replicas=3, pods={"tolerations": tolerating(30)})
    )
    world.create(DEPLOYMENT, workload("Deployment", "usual", replicas=3))
    world.create(DAEMON_SET, workload("DaemonSet", "agent"))
    world.create(POD, pod("faithful", tolerations=tolerating(None), nodeName="node-1"))
    world.advance(10)
    for app in ("quick", "usual", "agent"):
        assert sorted(world.nodes_of(app).values()) == ["node-0", "node-1", "node-2"]

    world.patch(NODE, "node-1", {"metadata": {"annotations": {HEARTBEATS: "stopped"}}})
    world.advance(GRACE_SECONDS - 15)
    assert world.taints("node-1") == set()
    world.advance(25)
    ready = world.condition(world.get(NODE, "node-1"), "Ready")
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    assert world.taints("node-1") == UNREACHABLE
    assert "NodeNotReady" in [reason for reason, _ in world.events("node-1")]
    for name, node in world.nodes_of("usual").items():
        assert world.condition(world.get(POD, name), "Ready")["status"] == str(node != "node-1")

    world.advance(40)
    assert sorted(set(world.nodes_of("quick").values())) == ["node-0", "node-2"]
    assert len(world.nodes_of("quick")) == 3
    assert "node-1" in world.nodes_of("usual").values()
    world.advance(300)
    assert sorted(set(world.nodes_of("usual").values())) == ["node-0", "node-2"]
    assert len(world.nodes_of("usual")) == 3
    assert world.nodes_of("faithful") == {"faithful": "node-1"}
    assert "node-1" in world.nodes_of("agent").values()

    world.patch(NODE, "node-1", {"metadata": {"annotations": {HEARTBEATS: None}}})
    world.advance(30)
    assert world.condition(world.get(NODE, "node-1"), "Ready")["status"] == "True"
    assert world.taints("node-1") == set()
    gone = [each for each in world.list(POD, "default") if "deletionTimestamp" in each["metadata"]]
    assert gone == []
    assert world.condition(world.get(POD, "faithful"), "Ready")["status"] == "True"
    assert len(world.nodes_of("agent")) == 3


def test_a_node_that_is_deleted(world: ClusterHarness) -> None:
    world.create(DEPLOYMENT, workload("Deployment", "web", replicas=3))
    world.create(DAEMON_SET, workload("DaemonSet", "agent"))
    world.advance(10)
    world.delete(NODE, "node-2")
    world.advance(120)
    assert sorted(set(world.nodes_of("web").values())) == ["node-0", "node-1"]
    assert len(world.nodes_of("web")) == 3
    assert sorted(world.nodes_of("agent").values()) == ["node-0", "node-1"]
    assert {each["involvedObject"]["kind"] for each in world.list(CORE_EVENT)} >= {"Node", "Pod"}
