"""The scheduler over a real API server in the same process, under virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from moorage.client.client import Client
from moorage.config.load import default_config, parse_config
from moorage.plugins import default_registry
from moorage.scheduler.scheduler import Scheduler
from tests.apiserver.client import Cluster, node, pod, settled

PODS = "/api/v1/namespaces/default/pods"
TWO_PROFILES = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "my-scheduler"}],
}


class Scheduled(Cluster):
    """A cluster with a scheduler at work."""

    def __init__(self, config: Any = None) -> None:
        super().__init__()
        self._config = parse_config(config, "test") if config else default_config()
        self._runner.run(self._start())

    async def _start(self) -> None:
        client = Client(self.server.api, self.server.token)
        scheduler = Scheduler(client, self._config, default_registry(), self.clock, Random(1), "test")
        self._task = asyncio.ensure_future(scheduler.run())

    def add_node(self, name: str, cpu: str = "8") -> None:
        """A node whose kubelet has spoken: without the taint that every new node gets."""
        made = node(name)
        made["status"]["capacity"]["cpu"] = cpu
        self.create("/api/v1/nodes", made)
        assert self.patch(f"/api/v1/nodes/{name}", "merge", {"spec": {"taints": None}}).code == 200

    def settle(self) -> None:
        self._runner.run(_rest(self._task))

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.settle()

    def node_of(self, name: str) -> str:
        return str(self.get(f"{PODS}/{name}")["spec"].get("nodeName", ""))

    def close(self) -> None:
        self._task.cancel()
        self._runner.run(_ended(self._task))
        super().close()


async def _rest(task: asyncio.Task[None]) -> None:
    for _ in range(30):
        await settled()
        if task.done():
            task.result()


async def _ended(task: asyncio.Task[None]) -> None:
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.fixture
def cluster() -> Iterator[Scheduled]:
    cluster = Scheduled()
    yield cluster
    cluster.close()


def wants(cpu: str, name: str = "p", **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    containers = [{"name": "main", "image": "registry.example/app:1", "resources": resources}]
    return pod(name, containers=containers, **spec)


def test_a_pod_gets_a_node_a_condition_and_an_event(cluster: Scheduled) -> None:
    cluster.add_node("n1")
    cluster.create(PODS, wants("1"))
    cluster.settle()
    stored = cluster.get(f"{PODS}/p").json
    assert stored["spec"]["nodeName"] == "n1"
    assert [(one["type"], one["status"]) for one in stored["status"]["conditions"]] == [
        ("PodScheduled", "True")
    ]
    events = cluster.get("/api/v1/namespaces/default/events")["items"]
    assert [(one["reason"], one["message"]) for one in events] == [
        ("Scheduled", "Successfully assigned default/p to n1")
    ]


def test_a_pod_that_fits_nowhere_says_why_and_goes_when_there_is_room(cluster: Scheduled) -> None:
    cluster.add_node("n1")
    cluster.create(PODS, wants("20"))
    cluster.settle()
    condition = cluster.get(f"{PODS}/p")["status"]["conditions"][0]
    assert condition["reason"] == "Unschedulable"
    assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    cluster.add_node("n2", cpu="64")
    cluster.settle()
    assert cluster.node_of("p") == "n2"  # No other pod is active, so it is popped from backoff early.


def test_a_pod_that_nothing_has_happened_for_is_not_tried_again(cluster: Scheduled) -> None:
    cluster.add_node("n1")
    cluster.create(PODS, wants("20"))
    cluster.settle()
    cluster.advance(100)
    cluster.patch("/api/v1/nodes/n1", "merge", {"metadata": {"annotations": {"some": "thing"}}})
    cluster.advance(100)
    tries = [one for one in cluster.get("/api/v1/events")["items"] if one["reason"] == "FailedScheduling"]
    assert len(tries) == 1
    cluster.advance(200)  # After five minutes it is tried again, in case a hint was wrong.
    tries = [one for one in cluster.get("/api/v1/events")["items"] if one["reason"] == "FailedScheduling"]
    assert len(tries) == 2


def test_pods_of_other_schedulers_are_counted_but_not_touched(cluster: Scheduled) -> None:
    cluster.add_node("n1")
    cluster.create(PODS, wants("7", "theirs", schedulerName="theirs", nodeName="n1"))
    cluster.create(PODS, wants("1", "unscheduled", schedulerName="theirs"))
    cluster.create(PODS, wants("2", "ours"))
    cluster.settle()
    assert cluster.node_of("unscheduled") == ""
    assert cluster.node_of("ours") == ""
    cluster.delete(f"{PODS}/theirs", {"gracePeriodSeconds": 0})
    cluster.advance(2)
    assert cluster.node_of("ours") == "n1"


def test_a_second_profile_has_its_own_pods() -> None:
    cluster = Scheduled(TWO_PROFILES)
    cluster.add_node("n1")
    cluster.create(PODS, wants("1", schedulerName="my-scheduler"))
    cluster.settle()
    assert cluster.node_of("p") == "n1"
    cluster.close()


def test_a_gated_pod_waits_for_its_gates(cluster: Scheduled) -> None:
    cluster.add_node("n1")
    cluster.create(PODS, wants("1", schedulingGates=[{"name": "example.com/hold"}]))
    cluster.settle()
    assert cluster.node_of("p") == ""
    cluster.patch(f"{PODS}/p", "merge", {"spec": {"schedulingGates": None}})
    cluster.settle()
    assert cluster.node_of("p") == "n1"


def test_a_more_important_pod_takes_the_place_of_a_lesser_one(cluster: Scheduled) -> None:
    cluster.add_node("n1")
    important = {"metadata": {"name": "important"}, "value": 1000}
    cluster.create("/apis/scheduling.k8s.io/v1/priorityclasses", important)
    cluster.create(PODS, wants("8", "lesser"))
    cluster.settle()
    assert cluster.node_of("lesser") == "n1"
    cluster.create(PODS, wants("8", "greater", priorityClassName="important"))
    cluster.settle()
    victim = cluster.get(f"{PODS}/lesser").json
    assert victim["metadata"]["deletionTimestamp"]
    assert "DisruptionTarget" in [one["type"] for one in victim["status"]["conditions"]]
    assert cluster.get(f"{PODS}/greater")["status"]["nominatedNodeName"] == "n1"
    cluster.delete(f"{PODS}/lesser", {"gracePeriodSeconds": 0})
    cluster.advance(10)
    assert cluster.node_of("greater") == "n1"


def test_a_hundred_pods_fill_the_cluster_and_no_more(cluster: Scheduled) -> None:
    for index in range(5):
        cluster.add_node(f"n{index}")
    for index in range(100):
        cluster.create(PODS, wants("500m", f"p{index}"))
    for _ in range(20):
        cluster.settle()
    placed = [one["spec"].get("nodeName") for one in cluster.get(PODS)["items"]]
    assert sum(1 for name in placed if name) == 80
    assert all(placed.count(f"n{index}") == 16 for index in range(5))
