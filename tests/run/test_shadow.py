"""`moorage run --shadow` beside a scheduler in another process, with permissions to read only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from moorage.cli.main import app
from moorage.plugins import default_registry
from moorage.sim.recording import load_recording
from moorage.sim.replay import ReplayResult
from tests.apiserver.client import node
from tests.apiserver.running import Kubectl, RunningServer
from tests.run.running import RunningScheduler, account_kubeconfig
from tests.up.objects import pod

Start = Callable[..., RunningScheduler]


@pytest.fixture(scope="module")
def reader(server: RunningServer, kubectl: Kubectl) -> Path:
    """How shadow mode reaches the server: with the roles that `moorage manifests --shadow` prints."""
    options = ["--shadow", "--name=shadow", "--replicas=1", "--no-pod-monitor"]
    printed = CliRunner().invoke(app, ["manifests", *options]).stdout
    wanted = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "RoleBinding")
    objects = [each for each in yaml.safe_load_all(printed) if each["kind"] in wanted]
    [role] = [each for each in objects if each["kind"] == "ClusterRole"]
    verbs = {
        verb for rule in role["rules"] for verb in rule["verbs"] if "reviews" not in str(rule["resources"])
    }
    assert verbs == {"list", "watch"}
    kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return account_kubeconfig(server, kubectl, "shadow")


@pytest.fixture(scope="module")
def nodes(kubectl: Kubectl) -> Iterator[None]:
    names = [f"shadow-{number}" for number in range(4)]
    for name in names:
        kubectl.create(node(name))
        kubectl("taint", "nodes", name, "node.kubernetes.io/not-ready-")
    yield
    kubectl("delete", "node", *names)


def run_both(
    start: Start,
    kubectl: Kubectl,
    reader: Path,
    folder: Path,
    *options: str,
    specs: Any = ({"cpu": "100m"},),
) -> tuple[list[Any], RunningScheduler]:
    report = folder / "report.jsonl"
    files = (f"--shadow-report={report}", f"--record={folder / 'recording.json'}")
    shadow = RunningScheduler(
        reader, "--shadow", *files, "--tie-seed=7", "-v=3", leads=False, output=folder / "table"
    )
    try:
        shadow.says("Handlers synced")
        binding = start(*options)
        names = [f"{folder.name.replace('_', '-')[:40]}-{number}" for number in range(12)]
        kinds = cycle(specs)
        for name in names:
            kubectl.create(pod(name, **next(kinds)))
        for name in names:
            kubectl("wait", f"pod/{name}", "--for=condition=PodScheduled", "--timeout=100s")
        binding.stop()
        shadow.stop()
        kubectl("delete", "pod", *names, "--grace-period=0", "--force")
    finally:
        if shadow.process.poll() is None:
            shadow.kill()
    return [json.loads(line) for line in report.read_text().splitlines()], shadow


def test_equal_seeds_agree_and_the_recording_can_be_replayed(
    start: Start, kubectl: Kubectl, nodes: None, reader: Path, tmp_path: Path
) -> None:
    lines, shadow = run_both(start, kubectl, reader, tmp_path, "--tie-seed=7")
    assert [line["result"] for line in lines] == ["same"] * 12
    assert "forbidden" not in shadow.log
    result = ReplayResult()
    result.add(load_recording(tmp_path / "recording.json"), default_registry())
    assert (result.pods, [str(each) for each in result.differences]) == (12, [])


def prefers(name: str) -> Any:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}]}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}


def keeps_apart() -> Any:
    every = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": every}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


TORN = (
    {"affinity": {"nodeAffinity": prefers("shadow-0")}},
    {"affinity": {"nodeAffinity": prefers("shadow-1"), "podAntiAffinity": keeps_apart()}},
)
"""Pods that prefer a node from which something else keeps them: its taint, or other pods."""


def test_another_weight_explains_the_differences(
    start: Start, kubectl: Kubectl, nodes: None, reader: Path, kubeconfig: Path, tmp_path: Path
) -> None:
    config = tmp_path / "weights.yaml"
    plugins = {"score": {"enabled": [{"name": "NodeAffinity", "weight": 50}]}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaseDuration": "2s", "renewDeadline": "1500ms", "retryPeriod": "200ms"},
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    config.write_text(yaml.safe_dump(document))
    kubectl("taint", "nodes", "shadow-0", "noisy=yes:PreferNoSchedule")
    lines, _ = run_both(start, kubectl, reader, tmp_path, f"--config={config}", specs=TORN)
    different = [line for line in lines if line["result"] == "different"]
    assert different
    assert {line["pod"][-1] in "02468" for line in different} == {True, False}
    assert different[-1]["plugin"] == "NodeAffinity"
    assert all(line["scores"]["NodeAffinity"][0] > line["scores"]["NodeAffinity"][1] for line in different)
    table = (tmp_path / "table").read_text().splitlines()
    assert table[-2:] == ["EXPLAINED BY   DIFFERENCES", f"NodeAffinity   {len(different)}"]
