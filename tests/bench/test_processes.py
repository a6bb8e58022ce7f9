"""Over HTTP, with real processes: our own, and a cluster that was there before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moorage.cli.main import app
from tests.apiserver.running import Kubectl, RunningServer, start_server
from tests.bench.device_files import ALLOCATED, CLAIMS, CLASS, DRIVER_OP, TEMPLATE, write_device_templates
from tests.bench.files import MEASURED, NODES, Files, node, pod
from tests.run.running import RunningScheduler

KINDS = "nodes,csinodes,pods,services,persistentvolumes,persistentvolumeclaims,priorityclasses,namespaces"


@pytest.fixture
def config(files: Files) -> str:
    """A bit of everything that requests are made for."""
    tainted = node(metadata={"name": "later"}, spec={"taints": [{"key": "closed", "effect": "NoSchedule"}]})
    files.template("closed.yaml", tainted)
    files.template("open.yaml", {**tainted, "spec": {}})
    files.template(
        "held.yaml", pod() | {"metadata": {"generateName": "held-", "finalizers": ["example.com/x"]}}
    )
    files.template("victim.yaml", pod(cpu="500m", terminationGracePeriodSeconds=0))
    files.template("important.yaml", pod(cpu="700m", priority=10))
    files.template(
        "service.yaml",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"generateName": "s-"},
            "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}},
        },
    )
    files.template(
        "pv.yaml",
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "csi": {"driver": "csi.example.com"},
            },
        },
    )
    files.template(
        "pvc.yaml",
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "true"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        },
    )
    volumes = {"persistentVolumeTemplatePath": "pv.yaml", "persistentVolumeClaimTemplatePath": "pvc.yaml"}
    allocatable = {"csiNodeAllocatable": {"csi.example.com": {"count": 5}}}
    path = files.case(
        {"opcode": "createNodes", "count": 1, "nodeTemplatePath": "closed.yaml"},
        {
            "opcode": "createPods",
            "count": 2,
            "podTemplatePath": "held.yaml",
            "namespace": "bench-held",
            "skipWaitToCompletion": True,
        },
        {"opcode": "barrier", "stageRequirement": "Attempted"},
        {"opcode": "updateAny", "templatePath": "open.yaml"},
        {"opcode": "barrier"},
        {"opcode": "deletePods", "namespace": "bench-held"},
        {
            "opcode": "createNodes",
            "count": 1,
            "nodeTemplatePath": "node.yaml",
            "nodeAllocatableStrategy": allocatable,
        },
        {"opcode": "createAny", "templatePath": "service.yaml", "namespace": "bench-any"},
        {
            "opcode": "createPods",
            "count": 2,
            "podTemplatePath": "pod.yaml",
            "namespace": "bench-pv",
            **volumes,
        },
        {"opcode": "createPods", "count": 2, "podTemplatePath": "victim.yaml", "namespace": "bench-victims"},
        {
            "opcode": "createPods",
            "count": 1,
            "podTemplatePath": "important.yaml",
            "namespace": "bench-measured",
            "collectMetrics": True,
        },
    )
    return str(path)


def bench(*words: str) -> dict[str, Any]:
    answer = CliRunner().invoke(app, ["bench", "--json", "--timeout", "1m", *words])
    assert answer.exit_code == 0, answer.output
    (result,) = json.loads(answer.stdout)["workloads"]
    assert result["pods"] == 1
    return dict(result)


def test_server_and_scheduler_in_processes_of_their_own(config: str) -> None:
    result = bench(config, "--http")
    assert all(size > 1024 * 1024 for size in result["peak_memory_bytes"].values())
    assert all(seconds is not None for seconds in result["cpu_seconds_per_pod"].values())
    assert result["attempt_seconds"]["results"]["scheduled"]["count"] == 1
    assert result["extension_points"]["Filter"]["count"] >= 1


def test_devices_over_http(files: Files) -> None:
    """Claims from templates are made by the bench: no controller runs beside the server."""
    write_device_templates(files, "resource.k8s.io/v1beta2")
    path = files.case(
        NODES, DRIVER_OP, CLASS, CLAIMS, ALLOCATED, TEMPLATE, {**MEASURED, "namespace": "a", "count": 1}
    )
    assert bench(str(path), "--http")["pods"] == 1


def test_a_kind_that_the_server_does_not_have_is_named(files: Files) -> None:
    files.template("rule.yaml", {"apiVersion": "resource.k8s.io/v1alpha3", "kind": "DeviceTaintRule"})
    path = files.case({"opcode": "createAny", "templatePath": "rule.yaml"}, NODES, MEASURED)
    answer = CliRunner().invoke(app, ["bench", "--http", str(path)])
    assert answer.exit_code == 1
    assert "op 0: the server has no kind DeviceTaintRule in resource.k8s.io/v1alpha3" in answer.output


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with start_server(tmp_path) as running:
        yield running


def test_a_cluster_that_was_there_before_is_left_as_it_was(
    config: str, server: RunningServer, tmp_path: Path
) -> None:
    kubectl = Kubectl(server, tmp_path)

    def everything() -> set[str]:
        items = kubectl.json("get", KINDS, "--all-namespaces")["items"]
        return {f"{each['kind']}/{each['metadata']['name']}" for each in items}

    with RunningScheduler(server.kubeconfig):
        before = everything()
        result = bench(config, "--kubeconfig", str(server.kubeconfig))
    assert everything() == before
    assert result["attempt_seconds"] is None
    assert result["cpu_seconds_per_pod"]["server"] is None
    assert "the scheduler's metrics cannot be read: no times of attempts and plugins" in result["notes"]
