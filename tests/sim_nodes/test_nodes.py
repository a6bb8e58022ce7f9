from __future__ import annotations

import itertools
from typing import Any

import pytest

from moorage.api.manifests import Manifest, moment
from moorage.client.kinds import LEASE, NODE, POD
from moorage_cluster.nodes.settings import NodeTemplate
from tests.sim_nodes.harness import NodesHarness

BARE: Manifest = {
    "metadata": {"name": "old"},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}


def lease(harness: NodesHarness, name: str = "node-0") -> dict[str, Any]:
    return harness.get(LEASE, name, "kube-node-lease")


def renewals(harness: NodesHarness, name: str, seconds: float) -> list[float]:
    """When a node's lease is renewed."""
    seen: list[str] = []

    def look() -> None:
        found = harness.find(LEASE, name, "kube-node-lease")
        if found is not None and found["spec"]["renewTime"] not in seen:
            seen.append(found["spec"]["renewTime"])

    harness.advance(seconds, step=0.1, after_step=look)
    start = moment("2026-03-01T12:00:00Z")
    return [(moment(text) - start).total_seconds() for text in seen]


def test_extended_resources_of_the_capacity_become_allocatable() -> None:
    with NodesHarness(NodeTemplate()) as harness:

        def after(amount: str | None) -> str | None:
            capacity = {"status": {"capacity": {"example.com/tape": amount}}}
            harness.patch(NODE, "node-0", capacity, subresource="status")
            harness.advance(15)
            allocatable: dict[str, str] = harness.get(NODE, "node-0")["status"]["allocatable"]
            return allocatable.get("example.com/tape")

        assert after("1000") == "1k"
        assert after(None) is None


def test_a_node_looks_like_a_real_one() -> None:
    template = NodeTemplate(
        cpu="8",
        memory="32Gi",
        zones=3,
        labels={"pool": "blue"},
        taints=({"key": "dedicated", "value": "blue", "effect": "NoSchedule"},),
        resources={"example.com/gpu": "4"},
    )
    with NodesHarness(template, count=4) as harness:
        node = harness.get(NODE, "node-3")
        status, labels = node["status"], node["metadata"]["labels"]
        assert labels["kubernetes.io/hostname"] == "node-3"
        assert (labels["kubernetes.io/os"], labels["kubernetes.io/arch"]) == ("linux", "amd64")
        assert (labels["topology.kubernetes.io/zone"], labels["pool"]) == ("zone-1", "blue")
        assert labels["node.kubernetes.io/instance-type"] == "moorage.simulated"
        assert {"key": "dedicated", "value": "blue", "effect": "NoSchedule"} in node["spec"]["taints"]
        assert (status["capacity"]["cpu"], status["allocatable"]["cpu"]) == ("8", "7900m")
        assert (status["capacity"]["memory"], status["allocatable"]["memory"]) == ("32Gi", "32412Mi")
        assert status["allocatable"]["example.com/gpu"] == "4"
        assert status["nodeInfo"]["kubeletVersion"] == "v1.37.0"
        assert {each["type"]: each["address"] for each in status["addresses"]} == {
            "InternalIP": "10.0.0.4",
            "Hostname": "node-3",
        }
        assert node["spec"]["podCIDR"] == "10.128.3.0/24"
        assert harness.node_conditions("node-3") == {
            "MemoryPressure": "False",
            "DiskPressure": "False",
            "PIDPressure": "False",
            "Ready": "True",
        }
        zones = {each["metadata"]["labels"]["topology.kubernetes.io/zone"] for each in harness.list(NODE)}
        assert zones == {"zone-1", "zone-2", "zone-3"}


def test_more_nodes_get_new_names_and_addresses() -> None:
    with NodesHarness(NodeTemplate(), count=2) as harness:
        harness._settling(harness.nodes.create(NodeTemplate(), 2))
        nodes = harness.list(NODE)
        assert [node["metadata"]["name"] for node in nodes] == ["node-0", "node-1", "node-2", "node-3"]
        assert len({node["spec"]["podCIDR"] for node in nodes}) == 4
        assert len({node["status"]["addresses"][0]["address"] for node in nodes}) == 4


def test_nodes_that_are_there_are_not_made_again() -> None:
    with NodesHarness(NodeTemplate(), count=2) as harness:
        made = harness._settling(harness.nodes.ensure(NodeTemplate(), 4))
        assert [node["metadata"]["name"] for node in made] == ["node-2", "node-3"]
        assert harness._settling(harness.nodes.ensure(NodeTemplate(), 4)) == []


def test_leases_are_renewed_every_ten_seconds() -> None:
    with NodesHarness(NodeTemplate(), count=2) as harness:
        moments = renewals(harness, "node-0", 60)
        assert 5 <= len(moments) <= 6
        gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
        assert all(10 <= gap <= 10.5 for gap in gaps)
        found = lease(harness)
        assert found["spec"]["holderIdentity"] == "node-0"
        assert found["spec"]["leaseDurationSeconds"] == 40
        owner = found["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["uid"]) == ("Node", harness.get(NODE, "node-0")["metadata"]["uid"])
        assert lease(harness, "node-1")["spec"]["renewTime"] != found["spec"]["renewTime"]


def test_a_lease_that_another_client_removed_comes_back() -> None:
    with NodesHarness(NodeTemplate()) as harness:
        harness.advance(15)
        harness.delete(LEASE, "node-0", "kube-node-lease")
        harness.advance(15)
        assert lease(harness)["spec"]["holderIdentity"] == "node-0"


def test_the_status_is_written_every_five_minutes_and_when_it_changes() -> None:
    with NodesHarness(NodeTemplate()) as harness:
        harness.advance(20)
        first = harness.get(NODE, "node-0")
        assert "images" not in first["status"] or not first["status"]["images"]
        harness.advance(250, step=10)
        assert (
            harness.get(NODE, "node-0")["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        )
        harness.advance(60, step=10)
        later = harness.get(NODE, "node-0")["status"]["conditions"]
        assert later[0]["lastHeartbeatTime"] > first["status"]["conditions"][0]["lastHeartbeatTime"]
        assert later[0]["lastTransitionTime"] == first["status"]["conditions"][0]["lastTransitionTime"]
        harness.pod("a", container={"image": "nginx"})
        harness.advance(15)
        images = harness.get(NODE, "node-0")["status"]["images"]
        assert images[0]["names"][-1] == "docker.io/library/nginx:latest"
        assert images[0]["names"][0].startswith("docker.io/library/nginx@sha256:")
        assert images[0]["sizeBytes"] > 0


@pytest.mark.parametrize("how", ["annotation", "method"])
def test_a_node_without_heartbeats_is_cut_off(how: str) -> None:
    with NodesHarness(NodeTemplate()) as harness:
        harness.pod("a", says={"duration": "60s"}, restartPolicy="Never")
        harness.pod("b")
        harness.pod("gone")
        harness.advance(15)
        if how == "annotation":
            harness.patch(NODE, "node-0", {"metadata": {"annotations": {"moorage.io/heartbeats": "stopped"}}})
        else:
            harness.nodes.stop_heartbeats("node-0")
        before = lease(harness)["spec"]["renewTime"]
        harness.delete(POD, "b")
        harness.delete(POD, "gone", grace_seconds=0)
        harness.pod("c")
        # What the node controller does with a node that it does not hear of.
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        harness.patch(
            NODE, "node-0", {"status": {"conditions": [unknown]}}, type="strategic", subresource="status"
        )
        not_ready = {"type": "Ready", "status": "False"}
        harness.patch(
            POD, "a", {"status": {"conditions": [not_ready]}}, type="strategic", subresource="status"
        )
        harness.advance(35)
        assert lease(harness)["spec"]["renewTime"] == before
        assert harness.phase("b") == "Running"
        assert "containerStatuses" not in harness.status("c")
        assert harness.node_conditions()["Ready"] == "Unknown"
        if how == "annotation":
            harness.patch(NODE, "node-0", {"metadata": {"annotations": {"moorage.io/heartbeats": None}}})
        else:
            harness.nodes.start_heartbeats("node-0")
            harness.settle()
        assert harness.node_conditions()["Ready"] == "True"
        assert harness.ready("a") == "True"
        harness.advance(5)
        assert harness.find(POD, "b") is None
        assert harness.phase("c") == "Running"
        harness.advance(10)
        assert lease(harness)["spec"]["renewTime"] > before
        assert harness.phase("a") == "Succeeded"


def test_a_node_that_is_taken_for_dead_but_lives_says_so() -> None:
    with NodesHarness(NodeTemplate()) as harness:
        harness.advance(15)
        unknown = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        harness.patch(NODE, "node-0", unknown, type="strategic", subresource="status")
        assert harness.node_conditions()["Ready"] == "Unknown"
        harness.advance(11)
        assert harness.node_conditions()["Ready"] == "True"


def test_a_pod_that_ended_while_its_node_was_cut_off_is_reported_later() -> None:
    with NodesHarness(NodeTemplate()) as harness:
        harness.pod("a", says={"duration": "20s"}, restartPolicy="Never")
        harness.pod("crashes", says={"duration": "20s"})
        harness.advance(15)
        harness.nodes.stop_heartbeats("node-0")
        before = harness.events("crashes")
        harness.advance(30)
        assert harness.phase("a") == "Running"
        assert harness.events("crashes") == before
        harness.nodes.start_heartbeats("node-0")
        harness.settle()
        assert harness.phase("a") == "Succeeded"
        assert harness.state("a")["terminated"]["finishedAt"] == "2026-03-01T12:00:23Z"


def test_a_node_that_was_there_before_gets_what_it_lacks() -> None:
    with NodesHarness(before=lambda harness: harness.create(NODE, BARE)) as harness:
        node = harness.get(NODE, "old")
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "old"
        assert node["spec"]["podCIDR"] == "10.128.0.0/24"
        assert node["status"]["capacity"]["cpu"] == "4"
        assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.37.0"
        assert harness.node_conditions("old")["Ready"] == "True"
        harness.pod("a", "old")
        harness.advance(10)
        assert harness.phase("a") == "Running"
        assert lease(harness, "old")["spec"]["holderIdentity"] == "old"


def test_addresses_of_nodes_that_were_there_before_are_not_given_again() -> None:
    taken = {
        **BARE,
        "spec": {"podCIDR": "10.128.0.0/24"},
        "status": {**BARE["status"], "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
    }
    with NodesHarness(before=lambda harness: harness.create(NODE, taken)) as harness:
        made = harness._settling(harness.nodes.create(NodeTemplate()))[0]
        assert made["spec"]["podCIDR"] == "10.128.1.0/24"
        assert made["status"]["addresses"][0]["address"] == "10.0.0.2"


def test_pods_that_ran_before_go_on() -> None:
    def before(harness: NodesHarness) -> None:
        harness.create(NODE, BARE)
        harness.pod("a", "old", says={"duration": "60s"}, restartPolicy="Never", requests={"cpu": "3"})
        harness.pod("done", "old", restartPolicy="Never")
        harness.run_pods(where=lambda pod: pod["metadata"]["name"] == "a")
        harness.run_pods("Succeeded", where=lambda pod: pod["metadata"]["name"] == "done")

    with NodesHarness(before=before) as harness:
        harness.advance(30)
        assert harness.phase("a") == "Running"
        assert harness.container("a")["restartCount"] == 0
        harness.pod("b", "old", requests={"cpu": "2"})
        assert harness.status("b")["reason"] == "OutOfcpu"
        harness.advance(31)
        assert harness.phase("a") == "Succeeded"
        harness.delete(POD, "done")
        assert harness.find(POD, "done") is None


def test_a_container_that_was_about_to_start_again_does_so() -> None:
    ended = {"exitCode": 1, "reason": "Error", "startedAt": "2026-03-01T11:00:00Z"}
    states: dict[str, Manifest] = {
        "waits": {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}},
        "ended": {"state": {"terminated": ended}},
    }

    def before(harness: NodesHarness) -> None:
        harness.create(NODE, BARE)
        for name, state in states.items():
            harness.pod(name, "old")
            container = {"name": "main", "image": "app", "imageID": "", "ready": False, "restartCount": 3}
            status = {"phase": "Running", "containerStatuses": [{**container, **state}]}
            harness.patch(POD, name, {"status": status}, subresource="status")

    with NodesHarness(before=before) as harness:
        harness.advance(1)
        for name in states:
            assert "running" in harness.state(name)
            assert harness.container(name)["restartCount"] == 4


def test_a_node_that_is_deleted_is_gone() -> None:
    with NodesHarness(NodeTemplate()) as harness:
        harness.advance(15)
        harness.delete(NODE, "node-0")
        harness.advance(15)
        assert harness.find(NODE, "node-0") is None
        harness.create(NODE, {**BARE, "metadata": {"name": "node-0"}})
        harness.pod("a")
        harness.advance(10)
        assert harness.phase("a") == "Running"


def test_the_same_seed_gives_the_same_history() -> None:
    def history(seed: int) -> list[dict[str, Any]]:
        with NodesHarness(NodeTemplate(), count=2, seed=seed, jitter=0.5) as harness:
            for index in range(4):
                harness.pod(f"p{index}", f"node-{index % 2}")
            harness.advance(10)
            return [pod["status"] for pod in harness.list(POD)]

    assert history(1) == history(1)
    assert history(1) != history(2)
