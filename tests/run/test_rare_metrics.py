"""Metrics of what does not happen every day: each fed by the thing itself, in this process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moorage.client.client import Client
from moorage.client.credentials import from_kubeconfig
from moorage.client.exec_credentials import ExecCredentials
from moorage.client.kinds import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE, STORAGE_CLASS
from moorage.config.load import default_config, parse_config
from moorage.framework.loading.registry import Registry
from moorage.http.errors import KubeconfigError
from moorage.plugins import default_registry
from moorage.scheduler.observers import MetricsObserver, read_gauges
from moorage.scheduler.scheduler import Scheduler
from moorage.services.metric_values import Distribution, Number
from moorage.services.metrics import Metrics
from moorage.services.request_metrics import MeasuredPlugin
from moorage_cluster.controllers.volume_provisioning import default_storage_class
from tests.scheduler.plugins import Hold, profile, registry_with
from tests.scheduler.running import SchedulerHarness, in_harness
from tests.scheduler.storage import add_claim, using
from tests.services.authorities import Authority

SAMPLES_ALL = 0.0


class AlwaysSampled(Random):
    """Chance that puts every cycle into the sample."""

    def random(self) -> float:
        return SAMPLES_ALL


def watched(
    harness: SchedulerHarness, metrics: Metrics, config: Any = None, registry: Registry | None = None
) -> Scheduler:
    """A scheduler at work, with everything taken down."""
    scheduler = Scheduler(
        Client(harness.line, harness.server.token),
        parse_config(config, "test") if config else default_config(),
        registry or default_registry(),
        harness.clock,
        Random(1),
        "host",
        observer=MetricsObserver(metrics),
    )
    harness.runs(scheduler.run())
    return scheduler


async def a_pod_waits_for_a_permit(harness: SchedulerHarness, metrics: Metrics) -> None:
    hold = Hold()
    scheduler = watched(harness, metrics, profile("Hold"), registry_with(hold))
    await harness.add_node("n1")
    await harness.add_pod("held")
    await harness.passes(1)
    read_gauges(metrics, scheduler)
    assert metrics.goroutines.labels("binding").value == 1
    hold.waiting().allow("Hold")
    await harness.passes(1)
    assert await harness.node_of("held") == "n1"
    assert metrics.permit_wait_duration.cells.keys() == {("Success",)}


async def a_pod_is_preempted(harness: SchedulerHarness, metrics: Metrics) -> None:
    watched(harness, metrics)
    await harness.add_priority("high", 1000)
    await harness.add_node("n1", cpu="4")
    await harness.add_pod("lesser", cpu="4", terminationGracePeriodSeconds=0)
    await harness.passes(1)
    await harness.add_pod("greater", cpu="4", priorityClassName="high")
    await harness.passes(5)
    assert await harness.node_of("greater") == "n1"
    assert metrics.preemption_goroutines.labels("success").value == 1
    assert metrics.preemption_victims.sum == 1
    assert metrics.preemption_attempts.value == 1


async def room_is_made_for_a_pod_that_waits(harness: SchedulerHarness, metrics: Metrics) -> None:
    watched(harness, metrics)
    await harness.add_node("n1", cpu="4")
    await harness.add_pod("first", cpu="4")
    await harness.passes(1)
    await harness.add_pod("second", cpu="4")
    await harness.passes(1)
    await harness.delete_pod("first")
    await harness.passes(5)
    assert await harness.node_of("second") == "n1"
    hints = metrics.queueing_hint_duration.cells
    assert ("NodeResourcesFit", "AssignedPodDelete", "Queue") in hints


async def a_volume_is_never_made(harness: SchedulerHarness, metrics: Metrics) -> None:
    scheduler = watched(harness, metrics)
    await harness.client.create(STORAGE_CLASS, "", default_storage_class())
    await harness.add_node("n1")
    await add_claim(harness, "data")
    await harness.add_pod("p", **using("data"))
    await harness.passes(1)
    read_gauges(metrics, scheduler)
    assert metrics.goroutines.labels("PreBind").value == 1
    await harness.delete_pod("p")
    await harness.passes(1)
    assert metrics.volume_stage_errors.labels("bind").value == 1


async def add_devices(harness: SchedulerHarness, **device: Any) -> None:
    """A node with one device, which stands for a resource."""
    await harness.add_node("n1")
    group = {"apiVersion": "resource.k8s.io/v1"}
    classes = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    await harness.client.create(DEVICE_CLASS, "", {**group, "kind": "DeviceClass", **classes})
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d0", **device}],
    }
    slices = {"metadata": {"name": "n1"}, "spec": spec}
    await harness.client.create(RESOURCE_SLICE, "", {**group, "kind": "ResourceSlice", **slices})


async def a_device_takes_its_time(harness: SchedulerHarness, metrics: Metrics) -> None:
    watched(harness, metrics)
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    await add_devices(harness, **conditions)
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "claim", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}},
    }
    await harness.client.create(RESOURCE_CLAIM, "default", body)
    await harness.add_pod("p", resourceClaims=[{"name": "it", "resourceClaimName": "claim"}])
    await harness.passes(3)
    claim = await harness.client.get(RESOURCE_CLAIM, "default", "claim")
    ready = {"type": "ready", "status": "True", "reason": "Yes", "message": "", "lastTransitionTime": None}
    ready["lastTransitionTime"] = claim["status"]["allocation"]["allocationTimestamp"]
    device = {"driver": "gpu.example.com", "pool": "n1", "device": "d0", "conditions": [ready]}
    claim["status"]["devices"] = [device]
    await harness.client.update(RESOURCE_CLAIM, claim, "status")
    await harness.passes(6)
    assert await harness.node_of("p") == "n1"
    labels = ("default-scheduler", "gpu.example.com", "success")
    assert metrics.device_binding_allocations.labels(*labels).value == 1
    assert metrics.device_binding_wait_duration.labels(*labels).sum > 0


async def a_device_stands_for_a_resource(harness: SchedulerHarness, metrics: Metrics) -> None:
    watched(harness, metrics)
    await add_devices(harness)
    limits = {"limits": {"example.com/gpu": "1"}, "requests": {"cpu": "1", "example.com/gpu": "1"}}
    container = {"name": "main", "image": "registry.example/app:1", "resources": limits}
    await harness.add_pod("p", containers=[container])
    await harness.passes(3)
    assert await harness.node_of("p") == "n1"
    created = "dynamic_resource_allocation_resourceclaim_creates_total"
    labels = 'admin_access="false",owner_api_group="",owner_api_kind="Pod",status="success"'
    assert f"{created}{{{labels}}} 1" in metrics.text().decode()


async def every_cycle_is_in_the_sample(harness: SchedulerHarness, metrics: Metrics) -> None:
    watched(harness, metrics)
    for name in ("n1", "n2"):
        await harness.add_node(name)
    await harness.add_pod("p")
    await harness.passes(1)
    points = {point for _, point, _ in metrics.plugin_execution_duration.cells}
    # Calls that the plan leaves out for this pod (Reserve, PreBindPreFlight) are not made to be measured.
    assert points == {"PreEnqueue", "PreFilter", "Filter", "PreScore", "Score", "Bind"}


Scenario = Callable[[SchedulerHarness, Metrics], Awaitable[None]]

RARE: dict[str, Scenario] = {
    "scheduler_permit_wait_duration_seconds": a_pod_waits_for_a_permit,
    "scheduler_preemption_goroutines_execution_total": a_pod_is_preempted,
    "scheduler_preemption_goroutines_duration_seconds": a_pod_is_preempted,
    "scheduler_queueing_hint_execution_duration_seconds": room_is_made_for_a_pod_that_waits,
    "scheduler_volume_scheduling_stage_error_total": a_volume_is_never_made,
    "scheduler_dra_bindingconditions_allocations_total": a_device_takes_its_time,
    "scheduler_dra_bindingconditions_wait_duration_seconds": a_device_takes_its_time,
    "dynamic_resource_allocation_resourceclaim_creates_total": a_device_stands_for_a_resource,
    "scheduler_plugin_execution_duration_seconds": every_cycle_is_in_the_sample,
}


@pytest.mark.parametrize("scenario", dict.fromkeys(RARE.values()), ids=lambda scenario: scenario.__name__)
def test_rare_things_are_taken_down(scenario: Scenario) -> None:
    metrics = Metrics(AlwaysSampled())

    async def run(harness: SchedulerHarness) -> None:
        await scenario(harness, metrics)

    in_harness(run)
    for name in (name for name, each in RARE.items() if each is scenario):
        cells = metrics._section.metrics[name].cells.values()
        assert any(_has_counted(cell) for cell in cells), name


def _has_counted(cell: Number | Distribution) -> bool:
    return bool(cell.value) if isinstance(cell, Number) else any(cell.counts)


def test_what_credential_plugins_do_is_taken_down(tmp_path: Path) -> None:
    """An exec plugin that gives a certificate, another one, and then fails."""
    metrics = Metrics()
    certificate, key = _split(Authority("an authority").client("me")[1])
    script = tmp_path / "plugin.py"
    status = {"clientCertificateData": certificate, "clientKeyData": key}
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    script.write_text(f"import json; print(json.dumps({credential!r}))")
    exec_config = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script)],
        "interactiveMode": "Never",
    }
    config = {
        "clusters": [{"name": "it", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "it", "user": {"exec": exec_config}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "current-context": "it",
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(repr(config))
    credentials = from_kubeconfig([kubeconfig]).credentials
    assert isinstance(credentials, ExecCredentials)
    plugin = credentials.observer = MeasuredPlugin(metrics)

    async def run() -> None:
        await credentials.renew()
        await credentials.renew()
        script.write_text("raise SystemExit(3)")
        with pytest.raises(KubeconfigError):
            await credentials.renew()

    asyncio.run(run())
    plugin.read()
    calls = {labels: cell.value for labels, cell in metrics.exec_plugin_calls.cells.items()}
    assert calls == {("0", "no_error"): 2, ("3", "plugin_execution_error"): 1}
    assert 0 < metrics.exec_certificate_seconds.value < 86400
    assert sum(metrics.exec_certificate_age.counts) == 1


def _split(pem: str) -> tuple[str, str]:
    head, marker, rest = pem.partition("-----BEGIN PRIVATE KEY-----")
    return head, marker + rest
