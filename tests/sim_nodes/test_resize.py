from __future__ import annotations

from typing import Any

from moorage.client.kinds import POD
from moorage_cluster.nodes.settings import NodeTemplate
from tests.sim_nodes.harness import NodesHarness

TEMPLATE = NodeTemplate(cpu="8", reserved={})


def resize(world: NodesHarness, name: str, cpu: str) -> None:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    world.patch(POD, name, {"spec": {"containers": [container]}}, type="strategic", subresource="resize")


def resources(world: NodesHarness, name: str) -> tuple[Any, Any]:
    status = world.container(name)
    return status["resources"], status["allocatedResources"]


def test_a_pod_gets_what_it_asks_for_if_there_is_room() -> None:
    with NodesHarness(TEMPLATE) as world:
        world.pod("a", requests={"cpu": "1"})
        world.advance(5)
        assert resources(world, "a") == ({"requests": {"cpu": "1"}}, {"cpu": "1"})
        resize(world, "a", "2")
        assert resources(world, "a") == ({"requests": {"cpu": "2"}}, {"cpu": "2"})
        assert world.status("a")["observedGeneration"] == 2
        world.pod("b", requests={"cpu": "7"})
        assert world.status("b")["message"].endswith("cpu, requested: 7000, used: 2000, capacity: 8000")
        resize(world, "a", "1")
        world.pod("c", requests={"cpu": "7"})
        world.advance(5)
        assert world.phase("c") == "Running"


def test_a_pod_waits_for_resources_that_are_not_there() -> None:
    with NodesHarness(TEMPLATE) as world:
        world.pod("a", requests={"cpu": "1"})
        world.pod("b", requests={"cpu": "6"})
        world.advance(5)
        resize(world, "a", "4")
        pending = world.conditions("a")["PodResizePending"]
        assert (pending["status"], pending["reason"], pending["message"]) == (
            "True",
            "Deferred",
            "Node didn't have enough resource: cpu, requested: 4000, used: 6000, capacity: 8000",
        )
        assert resources(world, "a") == ({"requests": {"cpu": "1"}}, {"cpu": "1"})
        world.delete(POD, "b")
        world.advance(5)
        assert "PodResizePending" not in world.conditions("a")
        assert resources(world, "a") == ({"requests": {"cpu": "4"}}, {"cpu": "4"})
