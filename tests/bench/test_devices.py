"""Workloads with devices: a driver's slices, claims from templates, claims allocated without pods."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.client.kinds import POD, RESOURCE_CLAIM, RESOURCE_SLICE
from tests.bench.device_files import (
    ALLOCATED,
    CLAIMS,
    CLASS,
    DRIVER,
    DRIVER_OP,
    TEMPLATE,
    write_device_templates,
)
from tests.bench.files import MEASURED, NODES, EngineRun, Files, node

PODS = {**MEASURED, "namespace": "a"}


@pytest.fixture(autouse=True)
def templates(files: Files) -> None:
    write_device_templates(files)
    files.template("plain.yaml", node())


def devices_run(files: Files, *ops: dict[str, Any], devices: int = 2) -> EngineRun:
    plain_nodes = {**NODES, "nodeTemplatePath": "plain.yaml"}
    driver = {**DRIVER_OP, "maxClaimsPerNodeParam": "$devices"}
    size = {"name": "tiny", "params": {"devices": devices}}
    return EngineRun(files, NODES, plain_nodes, driver, CLASS, *ops, workloads=[size])


def allocated(harness: EngineRun) -> set[tuple[str, str]]:
    claims = harness.all(RESOURCE_CLAIM)
    given = [each.status.allocation.devices.results for each in claims if each.status.allocation]
    return {(result.pool, result.device) for results in given for result in results}


def test_a_driver_publishes_devices_on_its_nodes(files: Files) -> None:
    harness = devices_run(files, TEMPLATE, PODS)
    slices = {each.name: each.spec for each in harness.all(RESOURCE_SLICE)}
    assert slices.keys() == {"gpu-0-00000", "gpu-0-00001"}
    for name, spec in slices.items():
        assert (spec.driver, spec.node_name, spec.pool.name) == (DRIVER, name, name)
        assert [each.name for each in spec.devices] == ["instance-0", "instance-1"]


def test_pods_get_claims_from_templates_and_devices(files: Files) -> None:
    harness = devices_run(files, TEMPLATE, PODS)
    assert harness.report.workloads[0].pods == 3
    assert len(allocated(harness)) == 3
    for each in harness.all(POD):
        (status,) = each.status.resource_claim_statuses
        claim = harness.store.get(RESOURCE_CLAIM, "a", status.resource_claim_name)
        assert claim.controller.uid == each.uid
        assert [consumer.uid for consumer in claim.status.reserved_for] == [each.uid]


def test_claims_are_deleted_with_their_pods(files: Files) -> None:
    """Otherwise the second batch of pods would find no devices."""
    harness = devices_run(files, TEMPLATE, {**PODS, "steadyState": True, "duration": "300ms"})
    assert harness.report.workloads[0].pods > 4
    assert len(harness.all(RESOURCE_CLAIM)) <= 4


def test_claims_are_allocated_without_pods(files: Files) -> None:
    harness = devices_run(files, CLAIMS, ALLOCATED, TEMPLATE, {**PODS, "count": 2}, devices=3)
    claims = harness.all(RESOURCE_CLAIM)
    assert len(claims) == 6
    assert sum(not each.status.reserved_for for each in claims) == 4
    assert len(allocated(harness)) == 6, "no device is allocated twice"


def test_claims_without_devices_fail(files: Files) -> None:
    few = {**DRIVER_OP, "maxClaimsPerNode": 1}
    reason = files.failure(NODES, few, CLASS, CLAIMS, ALLOCATED, MEASURED)
    assert reason.startswith("op 4: no node has the devices of claim a/gpu-")


def test_claims_of_an_unknown_class_fail(files: Files) -> None:
    reason = files.failure(NODES, CLAIMS, ALLOCATED, MEASURED)
    assert "could not retrieve device class gpu" in reason


def test_a_pod_without_its_template_waits(files: Files) -> None:
    assert "0 of 3 pods are scheduled" in files.failure(NODES, CLASS, {**MEASURED, "count": 3})
