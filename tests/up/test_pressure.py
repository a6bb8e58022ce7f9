"""Memory pressure, from a pod that uses too much to what the scheduler makes of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moorage.client.kinds import NODE, POD
from moorage_cluster.local import LocalSettings
from moorage_cluster.nodes.settings import NodeTemplate
from tests.up.harness import ClusterHarness
from tests.up.objects import pod

PRESSURE = ("memory-pressure", "NoSchedule")


@pytest.fixture
def harness() -> Iterator[ClusterHarness]:
    with ClusterHarness(LocalSettings(nodes=1, template=NodeTemplate(memory="4Gi", zones=1))) as harness:
        yield harness


def test_best_effort_goes_first_and_guaranteed_stays(harness: ClusterHarness) -> None:
    """Each uses more of its node over time, the further above its request the lower its class."""
    all_of_it = {"cpu": "500m", "memory": "1Gi"}
    harness.create(POD, pod("guaranteed", **all_of_it, limits=all_of_it, says={"usage": "memory=900Mi"}))
    harness.create(POD, pod("burstable", memory="512Mi", says={"usage": "memory=1Gi+10Mi/s"}))
    harness.create(POD, pod("besteffort", says={"usage": "memory=1Gi+10Mi/s"}))
    classes = {each["metadata"]["name"]: each["status"]["qosClass"] for each in harness.list(POD, "default")}
    assert classes == {"guaranteed": "Guaranteed", "burstable": "Burstable", "besteffort": "BestEffort"}
    harness.advance(20)
    assert set(harness.phases().values()) == {"Running"}
    assert harness.taints("node-0") == set()

    until(harness, "besteffort", "Failed")
    assert harness.phases() == {"guaranteed": "Running", "burstable": "Running", "besteffort": "Failed"}
    evicted = harness.get(POD, "besteffort")["status"]
    assert evicted["reason"] == "Evicted"
    assert evicted["message"].startswith("The node was low on resource: memory.")
    assert harness.condition(harness.get(NODE, "node-0"), "MemoryPressure")["status"] == "True"
    assert harness.taints("node-0") == {PRESSURE}

    toleration = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}
    harness.create(POD, pod("newcomer"))
    harness.create(POD, pod("tolerant", cpu="100m", tolerations=[toleration]))
    harness.advance(10)
    assert harness.phases()["newcomer"] == "Pending"
    scheduled = harness.condition(harness.get(POD, "newcomer"), "PodScheduled")
    assert scheduled["status"] == "False"
    assert "untolerated taint" in scheduled["message"]
    assert harness.phases()["tolerant"] == "Running"

    until(harness, "burstable", "Failed")
    assert harness.phases()["guaranteed"] == "Running"
    assert harness.phases()["newcomer"] == "Pending"
    harness.advance(330)
    assert harness.condition(harness.get(NODE, "node-0"), "MemoryPressure")["status"] == "False"
    assert harness.taints("node-0") == set()
    assert harness.phases()["newcomer"] == "Running"
    assert harness.phases()["guaranteed"] == "Running"


def until(harness: ClusterHarness, name: str, phase: str) -> None:
    """Let time pass until a pod is in a phase, five minutes at most."""
    for _ in range(300):
        if harness.phases()[name] == phase:
            return
        harness.advance(1)
    raise AssertionError(f"{name} is {harness.phases()[name]}")
