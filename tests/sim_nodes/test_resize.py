from __future__ import annotations

from typing import Any

from moorage.client.kinds import POD
from moorage_cluster.nodes.settings import NodeTemplate
from tests.sim_nodes.harness import NodesHarness

TEMPLATE = NodeTemplate(cpu="8", reserved={})


def resize(harness: NodesHarness, name: str, cpu: str) -> None:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    harness.patch(POD, name, {"spec": {"containers": [container]}}, type="strategic", subresource="resize")


def resources(harness: NodesHarness, name: str) -> tuple[Any, Any]:
    status = harness.container(name)
    return status["resources"], status["allocatedResources"]


def test_a_pod_gets_what_it_asks_for_if_there_is_room() -> None:
    with NodesHarness(TEMPLATE) as harness:
        harness.pod("a", requests={"cpu": "1"})
        harness.advance(5)
        assert resources(harness, "a") == ({"requests": {"cpu": "1"}}, {"cpu": "1"})
        resize(harness, "a", "2")
        assert resources(harness, "a") == ({"requests": {"cpu": "2"}}, {"cpu": "2"})
        assert harness.status("a")["observedGeneration"] == 2
        harness.pod("b", requests={"cpu": "7"})
        assert harness.status("b")["message"].endswith("cpu, requested: 7000, used: 2000, capacity: 8000")
        resize(harness, "a", "1")
        harness.pod("c", requests={"cpu": "7"})
        harness.advance(5)
        assert harness.phase("c") == "Running"


def test_a_pod_waits_for_resources_that_are_not_there() -> None:
    with NodesHarness(TEMPLATE) as harness:
        harness.pod("a", requests={"cpu": "1"})
        harness.pod("b", requests={"cpu": "6"})
        harness.advance(5)
        resize(harness, "a", "4")
        pending = harness.conditions("a")["PodResizePending"]
        assert (pending["status"], pending["reason"], pending["message"]) == (
            "True",
            "Deferred",
            "Node didn't have enough resource: cpu, requested: 4000, used: 6000, capacity: 8000",
        )
        assert resources(harness, "a") == ({"requests": {"cpu": "1"}}, {"cpu": "1"})
        harness.delete(POD, "b")
        harness.advance(5)
        assert "PodResizePending" not in harness.conditions("a")
        assert resources(harness, "a") == ({"requests": {"cpu": "4"}}, {"cpu": "4"})
