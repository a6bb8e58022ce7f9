from __future__ import annotations

import pytest

from moorage.client.kinds import NODE, POD
from moorage_cluster.nodes.images import size_of
from moorage_cluster.nodes.settings import NodeTemplate
from tests.sim_nodes.harness import NodesHarness

SMALL = NodeTemplate(memory="1Gi", reserved={}, ephemeral_storage="10Gi")


def three_classes(harness: NodesHarness, best_effort: str, burstable: str, guaranteed: str) -> None:
    all_of_it = {"cpu": "1", "memory": guaranteed}
    harness.pod("guaranteed", requests=all_of_it, limits=all_of_it, says={"usage": f"memory={guaranteed}"})
    harness.pod("burstable", requests={"memory": "100Mi"}, says={"usage": f"memory={burstable}"})
    harness.pod("best-effort", says={"usage": f"memory={best_effort}"})


def test_under_memory_pressure_best_effort_goes_first_then_burstable_and_guaranteed_stays() -> None:
    with NodesHarness(SMALL) as harness:
        # 1024Mi in all; above their requests they are by 400, 300 and nothing.
        three_classes(harness, best_effort="400Mi", burstable="400Mi", guaranteed="250Mi")
        harness.advance(9)
        assert {harness.phase(name) for name in ("best-effort", "burstable", "guaranteed")} == {"Running"}
        assert harness.node_conditions()["MemoryPressure"] == "False"
        harness.advance(1)
        assert harness.node_conditions()["MemoryPressure"] == "True"
        evicted = harness.status("best-effort")
        assert (evicted["phase"], evicted["reason"]) == ("Failed", "Evicted")
        assert evicted["message"] == (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 0. "
            "Container main was using 400Mi, request is 0, has larger consumption of memory. "
        )
        target = harness.conditions("best-effort")["DisruptionTarget"]
        assert (target["status"], target["reason"], target["message"]) == (
            "True",
            "TerminationByKubelet",
            evicted["message"],
        )
        assert harness.state("best-effort")["terminated"]["exitCode"] == 137
        assert harness.phase("burstable") == "Running"

        # Meanwhile the node takes no new pod without requests, unless it tolerates the pressure.
        harness.pod("new")
        refused = harness.status("new")
        assert (refused["phase"], refused["reason"]) == ("Failed", "Evicted")
        assert refused["message"] == "Pod was rejected: The node had condition: [MemoryPressure]. "
        tolerations = [
            {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}
        ]
        harness.pod("tolerating", tolerations=tolerations, says={"usage": "memory=1Mi"})
        harness.pod("asking", requests={"memory": "1Mi"}, says={"usage": "memory=1Mi"})
        assert (harness.phase("tolerating"), harness.phase("asking")) == ("Pending", "Pending")

        # The node is well again, but not for long: now the burstable pod grows.
        harness.patch(POD, "burstable", {"metadata": {"annotations": {"moorage.io/usage": "memory=700Mi"}}})
        harness.advance(10)
        message = harness.status("burstable")["message"]
        assert message == (
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 72Mi. "
            "Container main was using 700Mi, request is 100Mi, has larger consumption of memory. "
        )
        harness.advance(60)
        assert harness.phase("guaranteed") == "Running"
        assert harness.phase("tolerating") == "Running"
        reasons = [reason for reason, _ in harness.events("node-0")]
        assert reasons == ["NodeHasInsufficientMemory", "EvictionThresholdMet"]

        # The condition goes five minutes after the pressure was last seen.
        harness.advance(229, step=10)
        assert harness.node_conditions()["MemoryPressure"] == "True"
        harness.advance(12)
        assert harness.node_conditions()["MemoryPressure"] == "False"
        harness.pod("later")
        harness.advance(5)
        assert harness.phase("later") == "Running"


def test_one_pod_a_round_until_it_is_enough() -> None:
    with NodesHarness(SMALL) as harness:
        for index in range(4):
            harness.pod(f"p{index}", says={"usage": f"memory={300 + index}Mi"})
        harness.advance(10)
        assert [harness.phase(f"p{index}") for index in range(4)] == ["Running"] * 3 + ["Failed"]
        harness.advance(10)
        assert [harness.phase(f"p{index}") for index in range(4)] == ["Running"] * 3 + ["Failed"]


def test_critical_pods_stay() -> None:
    with NodesHarness(SMALL) as harness:
        harness.pod("critical", says={"usage": "memory=990Mi"}, priorityClassName="system-node-critical")
        harness.pod("modest", says={"usage": "memory=1Mi"})
        harness.advance(30)
        assert (harness.phase("critical"), harness.phase("modest")) == ("Running", "Failed")
        harness.pod("another", priorityClassName="system-cluster-critical")
        harness.advance(5)
        assert harness.phase("another") == "Running"


def test_memory_that_grows_brings_pressure_in_time() -> None:
    with NodesHarness(SMALL) as harness:
        harness.pod("leak", says={"usage": "memory=100Mi+10Mi/s"})
        harness.advance(80)
        assert harness.phase("leak") == "Running"
        harness.advance(20)
        assert harness.status("leak")["reason"] == "Evicted"


def test_pods_are_held_to_what_is_allocatable_even_if_the_system_is_modest() -> None:
    with NodesHarness(NodeTemplate(memory="1Gi", reserved={"memory": "400Mi"})) as harness:
        harness.pod("a", says={"usage": "memory=600Mi"})
        harness.advance(10)
        assert harness.status("a")["message"].startswith(
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 24Mi. "
        )


@pytest.mark.parametrize("sign", ["disk", "inodes"])
def test_under_disk_pressure_unused_images_go_before_pods(sign: str) -> None:
    with NodesHarness(
        SMALL, eviction_hard=f"nodefs.{'available' if sign == 'disk' else 'inodesFree'}<15%"
    ) as harness:
        harness.pod(
            "once",
            container={"image": "registry.example/old:1"},
            says={"duration": "1s"},
            restartPolicy="Never",
        )
        harness.pod("a", says={"usage": "ephemeral-storage=1Gi"})
        harness.advance(20)
        names = [each["names"][-1] for each in harness.get(NODE, "node-0")["status"]["images"]]
        assert sorted(names) == ["registry.example/app:1", "registry.example/old:1"]
        if sign == "disk":
            left = (10 << 30) * 85 // 100 - (1 << 30) - size_of("registry.example/app:1") - (1 << 20)
            usage = f"ephemeral-storage={left}"
        else:
            usage = f"inodes={655360 * 85 // 100 - 3000}"
        harness.pod("b", says={"usage": usage})
        harness.advance(20)
        assert harness.node_conditions()["DiskPressure"] == "True"
        names = [each["names"][-1] for each in harness.get(NODE, "node-0")["status"]["images"]]
        assert names == ["registry.example/app:1"]
        assert (harness.phase("a"), harness.phase("b")) == ("Running", "Running")
        harness.pod("c", requests={"memory": "1Mi"})
        assert harness.status("c")["message"] == "Pod was rejected: The node had condition: [DiskPressure]. "


def test_under_disk_pressure_the_pod_furthest_above_its_request_goes() -> None:
    with NodesHarness(SMALL) as harness:
        harness.pod("asked", requests={"ephemeral-storage": "6Gi"}, says={"usage": "ephemeral-storage=5Gi"})
        harness.pod("did-not-ask", says={"usage": "ephemeral-storage=4Gi"})
        harness.advance(10)
        message = harness.status("did-not-ask")["message"]
        assert message.startswith("The node was low on resource: ephemeral-storage. Threshold quantity: 1")
        assert message.endswith(
            "Container main was using 4Gi, request is 0, has larger consumption of ephemeral-storage. "
        )
        assert harness.phase("asked") == "Running"


def test_too_many_processes() -> None:
    with NodesHarness(SMALL, eviction_hard="pid.available<10%", max_pids=1000) as harness:
        harness.pod("fork-bomb", says={"usage": "pids=100+50/s"})
        harness.pod("modest")
        harness.advance(30)
        assert harness.node_conditions()["PIDPressure"] == "True"
        status = harness.status("fork-bomb")
        assert status["reason"] == "Evicted"
        assert status["message"].startswith("The node was low on resource: pids. Threshold quantity: 100, ")
        assert harness.phase("modest") == "Running"


def test_a_container_that_uses_more_disk_than_it_may_takes_its_pod_with_it() -> None:
    with NodesHarness(SMALL) as harness:
        side = {"name": "side", "image": "registry.example/side:1"}
        main = {
            "name": "main",
            "image": "registry.example/app:1",
            "resources": {"limits": {"ephemeral-storage": "1Gi"}},
        }
        harness.pod("alone", limits={"ephemeral-storage": "1Gi"}, says={"usage": "ephemeral-storage=2Gi"})
        harness.pod("within", limits={"ephemeral-storage": "2Gi"}, says={"usage": "ephemeral-storage=2Gi"})
        both = [main, {**side, "resources": {"limits": {"ephemeral-storage": "2Gi"}}}]
        harness.pod("one-of-two", containers=both, says={"usage.main": "ephemeral-storage=1025Mi"})
        harness.advance(10)
        assert harness.status("alone")["message"] == (
            "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "
        )
        assert harness.status("one-of-two")["message"] == (
            'Container main exceeded its local ephemeral storage limit "1Gi". '
        )
        assert harness.phase("within") == "Running"
        assert "DisruptionTarget" not in harness.conditions("alone")
        assert harness.node_conditions()["DiskPressure"] == "False"
