"""Capacity in a running scheduler, and the examples of its page."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from moorage import Cache, Client, Handle, default_registry, parse_config
from moorage.api.manifests import Manifest
from moorage.client.kinds import NAMESPACE, POD, Kind
from moorage.clock import VirtualClock
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.handle import Live
from moorage.optional_plugins.capacity.elastic_quota import ELASTIC_QUOTA
from moorage.optional_plugins.capacity.status_writer import StatusWriter
from moorage.optional_plugins.capacity.usage import Usage
from moorage.scheduler.observers import MetricsObserver
from moorage.scheduler.shadow.report import ShadowReport
from moorage.scheduler.shadow.scheduler import ShadowScheduler
from moorage.services.metrics import Metrics
from tests.optional_plugins.shown_examples import ROOT, check_examples
from tests.scheduler.running import SchedulerHarness, in_harness, pod

CUSTOM_RESOURCE_DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)
EXAMPLES = ROOT / "examples/capacity"
CONFIG = yaml.safe_load((EXAMPLES / "scheduler.yaml").read_text())
CRD = yaml.safe_load((EXAMPLES / "crd.yaml").read_text())


async def begin(harness: SchedulerHarness, **quotas: tuple[int, int]) -> None:
    """A cluster with the kind, and quotas of CPUs: least and most, by namespace."""
    await harness.client.create(CUSTOM_RESOURCE_DEFINITION, "", CRD)
    await harness.settles()
    for namespace, (least, most) in quotas.items():
        await harness.client.create(NAMESPACE, "", {"metadata": {"name": namespace}})
        spec = {"min": {"cpu": least}, "max": {"cpu": most}}
        manifest: Manifest = {
            "apiVersion": ELASTIC_QUOTA.api_version,
            "kind": "ElasticQuota",
            "metadata": {"name": "quota"},
            "spec": spec,
        }
        await harness.client.create(ELASTIC_QUOTA, namespace, manifest)


async def add(
    harness: SchedulerHarness, namespace: str, name: str, cpu: str = "1", grace_seconds: int = 0
) -> None:
    manifest = pod(name, cpu, terminationGracePeriodSeconds=grace_seconds)
    manifest["metadata"]["namespace"] = namespace
    await harness.client.create(POD, namespace, manifest)


async def node_of(harness: SchedulerHarness, namespace: str, name: str) -> str:
    found = await harness.client.get(POD, namespace, name)
    node: str = found["spec"].get("nodeName", "")
    return node


async def used(harness: SchedulerHarness, namespace: str) -> Any:
    found = await harness.client.get(ELASTIC_QUOTA, namespace, "quota")
    return found.get("status", {}).get("used")


def test_two_teams_borrow_and_give_back() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await begin(harness, red=(2, 3), blue=(2, 4))
        await harness.add_node("n1", cpu="8")
        scheduler = harness.scheduler(config=CONFIG)
        for number in range(4):
            await add(harness, "red", f"r{number}")
            await harness.passes(5)
        assert await node_of(harness, "red", "r2") == "n1"
        assert await node_of(harness, "red", "r3") == ""
        condition = (await harness.client.get(POD, "red", "r3"))["status"]["conditions"][0]
        assert "ElasticQuota red/quota: cpu: used 3, requested 1, max 3" in condition["message"]
        assert await used(harness, "red") == {"cpu": "3"}
        assert await used(harness, "blue") == {"cpu": "0"}
        await add(harness, "blue", "b0", "2")
        await harness.passes(10)
        assert await node_of(harness, "blue", "b0") == "n1"
        assert not await harness.exists(POD, "red", "r2")
        await harness.passes(10)
        assert (await used(harness, "red"), await used(harness, "blue")) == ({"cpu": "2"}, {"cpu": "2"})
        scheduler.cache.validate()
        scheduler.queue.validate()

    in_harness(scenario)


def test_preemptors_that_come_together_leave_the_guarantee() -> None:
    """More is guaranteed than there is; victims take long to stop, and count as gone."""

    async def scenario(harness: SchedulerHarness) -> None:
        await begin(harness, red=(2, 4), blue=(3, 3))
        await harness.add_node("n1", cpu="4")
        scheduler = harness.scheduler(config=CONFIG)
        for number in range(4):
            await add(harness, "red", f"r{number}", grace_seconds=600)
        await harness.passes(5)
        for number in range(3):
            await add(harness, "blue", f"b{number}")
        await harness.passes(30)
        red, blue = [await harness.client.list(POD, namespace) for namespace in ("red", "blue")]
        assert sum("deletionTimestamp" in each["metadata"] for each in red) == 2
        assert sum(each["status"].get("nominatedNodeName") == "n1" for each in blue) == 2
        scheduler.cache.validate()

    in_harness(scenario)


def test_a_pod_is_tried_again_when_its_quota_has_room() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await begin(harness, red=(1, 1), blue=(1, 2))
        await harness.add_node("n1", cpu="8")
        scheduler = harness.scheduler(config=CONFIG)
        for namespace, name in (("red", "r0"), ("blue", "b0"), ("red", "r1")):
            await add(harness, namespace, name)
            await harness.passes(5)
        attempts = scheduler.cycles_begun
        await harness.client.delete(POD, "blue", "b0")
        await harness.passes(20)
        assert scheduler.cycles_begun == attempts, "that is not the quota that it lacks"
        await harness.client.delete(POD, "red", "r0")
        await harness.passes(20)
        assert await node_of(harness, "red", "r1") == "n1"
        await add(harness, "red", "r2")
        await harness.passes(5)
        attempts = scheduler.cycles_begun
        patch = {"spec": {"max": {"cpu": 2}}}
        await harness.client.patch(ELASTIC_QUOTA, "red", "quota", patch, "merge")
        await harness.passes(20)
        assert await node_of(harness, "red", "r2") == "n1"
        assert scheduler.cycles_begun == attempts + 1
        scheduler.cache.validate()
        scheduler.queue.validate()

    in_harness(scenario)


def shown(metrics: Metrics) -> list[str]:
    lines = metrics.text().decode().splitlines()
    return sorted(line for line in lines if line.startswith("moorage_capacity"))


def test_refusals_and_evictions_are_counted() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await begin(harness, red=(1, 2), blue=(1, 1))
        await harness.add_node("n1", cpu="8")
        metrics = Metrics()
        harness.scheduler(config=CONFIG, observer=MetricsObserver(metrics))
        for namespace, name in (("red", "r0"), ("red", "r1"), ("red", "r2"), ("blue", "b0")):
            await add(harness, namespace, name)
            await harness.passes(1)
        await harness.passes(10)
        assert await node_of(harness, "blue", "b0") == "n1"
        assert 'moorage_capacity_evictions_total{quota="red/quota"} 1' in shown(metrics)
        refusals = 'moorage_capacity_refusals_total{quota="red/quota",resource="cpu"}'
        assert any(line.startswith(refusals) for line in shown(metrics))

    in_harness(scenario)


def test_a_status_that_cannot_be_written_is_not_tried_over_and_over(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await begin(harness, red=(2, 2))
        await harness.add_node("n1", cpu="8")
        version = CRD["spec"]["versions"][0]
        patch = {"spec": {"versions": [{**version, "subresources": None}]}}
        name = CRD["metadata"]["name"]
        await harness.client.patch(CUSTOM_RESOURCE_DEFINITION, "", name, patch, "merge")
        await harness.settles()
        scheduler = harness.scheduler(config=CONFIG)
        await add(harness, "red", "r0")
        await harness.passes(30)
        assert await node_of(harness, "red", "r0") == "n1"
        patched = [path for method, path in harness.line.requests if method == "PATCH"]
        assert sum(path.endswith("quota/status") for path in patched) == 1
        scheduler.cache.validate()

    in_harness(scenario)
    assert [each.getMessage() for each in caplog.records if "its status was not written" in each.getMessage()]


def test_a_scheduler_that_only_compares_writes_no_status(tmp_path: Path) -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        await begin(harness, red=(2, 2))
        await harness.add_node("n1", cpu="8")
        report = ShadowReport(Metrics(), tmp_path / "report")
        scheduler = ShadowScheduler(
            Client(harness.line, harness.server.token),
            parse_config(CONFIG, "test"),
            default_registry(),
            harness.clock,
            Random(1),
            "host",
            plugin_threads=0,
            report=report,
        )
        harness.runs(scheduler.run())
        await harness.passes(1)
        await add(harness, "red", "r0")
        metadata = {"name": "r0", "uid": (await harness.client.get(POD, "red", "r0"))["metadata"]["uid"]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"name": "n1"}}
        await harness.client.create_part(POD, "red", "r0", "binding", binding)
        await harness.passes(30)
        report.close()
        assert "red/r0" in (tmp_path / "report").read_text()
        assert not [path for method, path in harness.line.requests if path.endswith("quota/status")]

    in_harness(scenario)


def test_usage_is_not_looked_at_when_another_configuration_is_in_force() -> None:
    clock, looks = VirtualClock(), list[float]()
    nothing: Any = object()
    live = Live(nothing, nothing, nothing, nothing)
    cache = Cache()

    def snapshot() -> Snapshot:
        looks.append(clock.now())
        return cache.snapshot()

    handle = Handle(clock=clock, snapshot=snapshot, live=live)
    usage = Usage()
    usage.used[0]["pods"] = 1
    StatusWriter(handle, usage).changes()
    clock.advance(2.9)
    assert looks == [1.0]
    handle.periodic.end()
    clock.advance(300)
    assert looks == [1.0]


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    assert check_examples("docs/optional-plugins/capacity.md", tmp_path) == 2
