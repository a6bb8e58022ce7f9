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
def world() -> Iterator[ClusterHarness]:
    with ClusterHarness(LocalSettings(nodes=1, template=NodeTemplate(memory="4Gi", zones=1))) as world:
        yield world


def test_best_effort_goes_first_and_guaranteed_stays(world: ClusterHarness) -> None:
    """Each uses more of its node over time, the further above its request the lower its class."""
    all_of_it = {"cpu": "500m", "memory": "1Gi"}
    world.create(POD, pod("guaranteed", **all_of_it, limits=all_of_it, says={"usage": "memory=900Mi"}))
    world.create(POD, pod("burstable", memory="512Mi", says={"usage": "memory=1Gi+10Mi/s"}))
    world.create(POD, pod("besteffort", says={"usage": "memory=1Gi+10Mi/s"}))
    classes = {each["metadata"]["name"]: each["status"]["qosClass"] for each in world.list(POD, "default")}
    assert classes == {"guaranteed": "Guaranteed", "burstable": "Burstable", "besteffort": "BestEffort"}
    world.advance(20)
    assert set(world.phases().values()) == {"Running"}
    assert world.taints("node-0") == set()

    until(world, "besteffort", "Failed")
    assert world.phases() == {"guaranteed": "Running", "burstable": "Running", "besteffort": "Failed"}
    evicted = world.get(POD, "besteffort")["status"]
    assert evicted["reason"] == "Evicted"
    assert evicted["message"].startswith("The node was low on resource: memory.")
    assert world.condition(world.get(NODE, "node-0"), "MemoryPressure")["status"] == "True"
    assert world.taints("node-0") == {PRESSURE}

    toleration = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}
    world.create(POD, pod("newcomer"))
    world.create(POD, pod("tolerant", cpu="100m", tolerations=[toleration]))
    world.advance(10)
    assert world.phases()["newcomer"] == "Pending"
    scheduled = world.condition(world.get(POD, "newcomer"), "PodScheduled")
    assert scheduled["status"] == "False"
    assert "untolerated taint" in scheduled["message"]
    assert world.phases()["tolerant"] == "Running"

    until(world, "burstable", "Failed")
    assert world.phases()["guaranteed"] == "Running"
    assert world.phases()["newcomer"] == "Pending"
    world.advance(330)
    assert world.condition(world.get(NODE, "node-0"), "MemoryPressure")["status"] == "False"
    assert world.taints("node-0") == set()
    assert world.phases()["newcomer"] == "Running"
    assert world.phases()["guaranteed"] == "Running"


def until(world: ClusterHarness, name: str, phase: str) -> None:
    """Let time pass until a pod is in a phase, five minutes at most."""
    for _ in range(300):
        if world.phases()[name] == phase:
            return
        world.advance(1)
    raise AssertionError(f"{name} is {world.phases()[name]}")
