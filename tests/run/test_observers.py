"""What is measured of a cycle, and how the cache is compared with the API server; in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random
from types import SimpleNamespace

import pytest

from moorage.client.client import Client
from moorage.cluster.cache import Cache
from moorage.config.load import default_config
from moorage.engine.engine import Engine
from moorage.framework.interface.handle import Handle
from moorage.plugins import default_registry
from moorage.queue.queued_pod import QueuedPod
from moorage.scheduler.debugging import differences
from moorage.scheduler.observers import MetricsObserver
from moorage.services.metrics import Metrics
from tests.apiserver.client import Cluster, node
from tests.builders import make_node, make_pod

SAMPLED, LEFT_OUT = 0.0, 0.99


class Fixed(Random):
    """Draws the same number each time."""

    def __init__(self, number: float) -> None:
        super().__init__(0)
        self._number = number

    def random(self) -> float:
        return self._number


def decided(metrics: Metrics, cpu: str) -> None:
    """One cycle over two nodes."""
    profile = default_config().profiles[0]
    framework = MetricsObserver(metrics).framework(profile, default_registry(), Handle())
    cache = Cache([make_node("a"), make_node("b")])
    Engine(seed=1).decide(framework, make_pod("p", requests={"cpu": cpu}), cache.snapshot())


def points(metrics: Metrics) -> dict[str, str]:
    """The code of each extension point that was timed."""
    cells = metrics.framework_extension_point_duration.cells
    return {point: code for (point, code, _), cell in cells.items() if any(cell.counts)}


def test_extension_points_are_timed_with_their_outcome() -> None:
    metrics = Metrics()
    decided(metrics, "1")
    assert points(metrics) == dict.fromkeys(("PreFilter", "Filter", "PreScore", "Score"), "Success")
    assert metrics.preemption_attempts.value == 0


def test_a_pod_that_fits_nowhere_comes_to_preemption() -> None:
    metrics = Metrics()
    decided(metrics, "9999")
    assert points(metrics)["Filter"] == "Unschedulable"
    assert "PostFilter" in points(metrics)
    assert metrics.preemption_attempts.value == 1


@pytest.mark.parametrize(("draw", "is_timed"), [(SAMPLED, True), (LEFT_OUT, False)])
def test_plugins_are_timed_in_a_sample_of_the_cycles(draw: int, is_timed: bool) -> None:
    metrics = Metrics(Fixed(draw))
    decided(metrics, "1")
    assert (("NodeResourcesFit", "Filter", "Success") in metrics.plugin_execution_duration.cells) is is_timed
    asked = metrics.plugin_evaluation.labels("NodeResourcesFit", "Filter", "default-scheduler")
    assert asked.value == 2


def test_attempts_are_counted_up_to_fifteen() -> None:
    metrics = Metrics()
    observer = MetricsObserver(metrics)
    queued = QueuedPod(make_pod("p"), 0.0, first_attempt=1.0, attempts=20)
    observer.begins(queued)
    observer.failed(queued, "SchedulerError")
    observer.begins(queued)
    observer.bound(queued, 4.0)
    assert metrics.pod_scheduling_sli_duration.cells.keys() == {("15+",)}
    assert metrics.pod_scheduling_sli_duration.labels("15+").sum == 3.0
    results = {result: cell.value for (result, _), cell in metrics.schedule_attempts.cells.items()}
    assert results == {"error": 1, "scheduled": 1}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.close()


@pytest.mark.parametrize(
    ("ours", "found"),
    [
        ("n1", []),
        ("n2", ["node n1: missed", "node n2: redundant"]),
    ],
)
def test_the_cache_is_compared_with_the_api_server(cluster: Cluster, ours: str, found: list[str]) -> None:
    cluster.create("/api/v1/nodes", node("n1"))
    believed = SimpleNamespace(cache=Cache([make_node(ours)]), queue=None)
    client = Client(cluster.server.api, cluster.server.token)
    different = asyncio.run(differences(believed, client))
    assert [str(each) for each in different] == found
