"""All infrastructure controllers at once: they do not disturb each other."""

from __future__ import annotations

from moorage.client.kinds import (
    CORE_EVENT,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    STORAGE_CLASS,
)
from moorage_cluster.controllers.infrastructure_controllers import infrastructure_controllers
from moorage_cluster.controllers.volume_provisioning import default_storage_class
from tests.controllers.harness import Harness
from tests.controllers.infrastructure.objects import Kubelets, claim, pod_with_claim, taints


def test_a_cluster_that_is_left_alone_comes_to_rest() -> None:
    with Harness(*infrastructure_controllers()) as harness:
        kubelets = Kubelets(harness)
        for name in ("a", "b"):
            kubelets.add(name)
        harness.create(STORAGE_CLASS, default_storage_class())
        harness.create(
            POD_DISRUPTION_BUDGET,
            {
                "metadata": {"name": "b"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}},
            },
        )
        harness.create(PERSISTENT_VOLUME_CLAIM, claim("c", class_name=None))
        made = harness.create(POD, pod_with_claim("p", "c"))
        selected = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "a"}}}
        harness.patch(PERSISTENT_VOLUME_CLAIM, "c", selected)
        harness.bind(made, "a")
        harness.run_pods()
        revision = harness.server.store.revision
        harness.advance(30, step=5)
        assert harness.server.store.revision == revision
        kubelets.alive.remove("a")
        kubelets.pass_time(60)
        assert "unreachable:NoExecute" in taints(harness, "a")
        kubelets.pass_time(310)
        assert "deletionTimestamp" in harness.get(POD, "p")["metadata"]
        harness.finish_deletions()
        harness.delete(PERSISTENT_VOLUME_CLAIM, "c")
        assert harness.list(PERSISTENT_VOLUME) == []


def test_what_is_reported_again_is_counted() -> None:
    with Harness() as harness:
        node = harness.add_node("n")

        async def tell() -> None:
            for message in ("one", "two", "one", "one"):
                await harness.cluster.record_event(node, "Normal", "Test", message, "tester")

        harness.runner.run(tell())
        counts = {event["message"]: event["count"] for event in harness.list(CORE_EVENT)}
        assert counts == {"one": 3, "two": 1}
        [event] = [each for each in harness.list(CORE_EVENT) if each["message"] == "one"]

        async def clear_and_record() -> None:
            await harness.client.delete(CORE_EVENT, "default", event["metadata"]["name"])
            await harness.cluster.record_event(node, "Normal", "Test", "one", "tester")

        harness.runner.run(clear_and_record())
        assert {event["message"]: event["count"] for event in harness.list(CORE_EVENT)} == {
            "one": 1,
            "two": 1,
        }
