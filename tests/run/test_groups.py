"""Groups of pods with real processes: a cluster, a scheduler that records, and shadow mode beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from moorage.cli.main import app
from tests.apiserver.running import Kubectl
from tests.example_workloads import EXAMPLES, FOLDER, GENERIC, Example
from tests.run.running import RunningScheduler
from tests.run.test_shadow import keeps_apart, prefers
from tests.up.objects import pod
from tests.up.running import TIMEOUT_SECONDS, start_cluster


def run_both(
    example: Example, folder: Path, *options: str, workload: Path, awaited: list[str], seed: int = 7
) -> tuple[list[Any], list[str]]:
    """What shadow mode reports of a workload in the cluster of an example, and the table that it prints.

    awaited: the pods that are waited for. options: those of the scheduler that binds; it has seed 7.
    """
    gates = "--feature-gates=" + ",".join(f"{gate}=true" for gate in example.gates)
    report, table = folder / "report.jsonl", folder / "table"
    files = (f"--shadow-report={report}", f"--record={folder / 'shadow.json'}")
    words = ("--no-scheduler", "--from", str(FOLDER / example.cluster), gates)
    with start_cluster(folder, *words) as server:
        kubectl = Kubectl(server, folder)
        kubectl("wait", "nodes", "--all", "--for=condition=Ready", TIMEOUT_SECONDS)
        shadow = RunningScheduler(
            server.kubeconfig,
            "--shadow",
            *files,
            f"--tie-seed={seed}",
            gates,
            "-v=3",
            leads=False,
            output=table,
        )
        with shadow:
            shadow.says("Handlers synced")
            with RunningScheduler(server.kubeconfig, "--tie-seed=7", gates, *options):
                kubectl("apply", "-f", str(workload))
                pods = [f"pod/{name}" for name in awaited]
                kubectl("wait", *pods, "--for=condition=PodScheduled", TIMEOUT_SECONDS)
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    return lines, table.read_text().splitlines()


def replayed(file: Path) -> tuple[int, int]:
    """How many attempts a recording has, and how many are equal."""
    result = CliRunner().invoke(app, ["replay", "--json", str(file)])
    outcome = json.loads(result.stdout)
    assert outcome["differences"] == []
    return outcome["pods"], outcome["equal"]


AWAITED = {
    "gang-on-four-slots": ["train-0", "train-1", "train-2", "train-3"],
    "urgent-gang-on-busy": ["train-0", "train-1"],
    "composite-on-racks": ["driver"],
}


@pytest.mark.parametrize("example", [each for each in EXAMPLES if str(each) in AWAITED], ids=str)
@pytest.mark.parametrize("seed", [7, 8])
def test_shadow_mode_agrees_and_both_recordings_can_be_replayed(
    example: Example, seed: int, tmp_path: Path
) -> None:
    lines, table = run_both(
        example,
        tmp_path,
        f"--record={tmp_path / 'recording.json'}",
        workload=FOLDER / example.workload,
        awaited=AWAITED[str(example)],
        seed=seed,
    )
    assert lines
    assert {line["result"] for line in lines} <= {"same", "tie"}
    if seed == 7 and "composite" not in str(example):  # Whose first attempts may fail, while members come.
        assert {line["result"] for line in lines} == {"same"}
    assert all("group" in line for line in lines)
    assert "groups of   default-scheduler" in table[1]
    for name in ("recording.json", "shadow.json"):
        pods, equal = replayed(tmp_path / name)
        assert pods == equal > 0


def torn_groups() -> list[Any]:
    """Groups whose members prefer a node from which something keeps them: its taint, or other members."""
    tainted = {"nodeAffinity": prefers("bergen-1")}
    apart = {"nodeAffinity": prefers("bergen-2"), "podAntiAffinity": keeps_apart()}
    made: list[Any] = []
    for name, affinity in (("noisy", tainted), ("apart", apart)):
        kind = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": name}}
        made.append({**kind, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})
        member = {"schedulingGroup": {"podGroupName": name}, "affinity": affinity}
        made += [pod(f"{name}-{number}", cpu="100m", **member) for number in range(2)]
    return made


def test_another_weight_explains_the_differences_of_groups(tmp_path: Path) -> None:
    example = Example("", "groups/racks.yaml", GENERIC)
    workload, config = tmp_path / "workload.yaml", tmp_path / "weights.yaml"
    taint = [{"key": "noisy", "value": "yes", "effect": "PreferNoSchedule"}]
    quiet = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bergen-1"}, "spec": {"taints": taint}}
    workload.write_text(yaml.safe_dump_all([quiet, *torn_groups()]))
    plugins = {"score": {"enabled": [{"name": "NodeAffinity", "weight": 50}]}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(tmp_path / "kubeconfig")},
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    config.write_text(yaml.safe_dump(document))
    awaited = ["noisy-0", "noisy-1", "apart-0", "apart-1"]
    lines, table = run_both(example, tmp_path, f"--config={config}", workload=workload, awaited=awaited)
    assert [line["group"] for line in lines] == ["default/noisy", "default/apart"]
    assert {line["result"] for line in lines} == {"different"}
    assert lines[0]["member"] == "default/noisy-0"
    assert (lines[1]["member"], lines[1]["plugin"]) == ("default/apart-1", "NodeAffinity")
    assert all(line["scores"]["NodeAffinity"][0] > line["scores"]["NodeAffinity"][1] for line in lines)
    assert table[-2:] == ["EXPLAINED BY   DIFFERENCES", "NodeAffinity   2"]
