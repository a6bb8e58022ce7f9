"""`moorage simulate` as a process."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, "-m", "moorage", "simulate"]


def run(*words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
    assert ended.returncode == status, ended.stderr
    return ended


def outputs(folder: Path, hash_seed: str) -> dict[str, bytes]:
    """All that a simulation with preemption, devices and a script gives, in a process of its own."""
    folder.mkdir()
    script, files = folder / "nodes.yaml", (folder / "placements.csv", folder / "report.html")
    script.write_text("- {at: 20s, drain: node-1}\n- {at: 60s, recover: node-1}\n")
    gpu = "name=gpu,count=1,cpu=8,memory=32Gi,nvidia.com/gpu=2,price=2"
    words = ["--nodes", "3", "--shape", gpu, "--generate", "60", "--seed", "7", "--priorities", "0,10"]
    words += ["--script", str(script), "-o", "json"]
    words += ["--placements", str(files[0]), "--report", str(files[1])]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    ended = subprocess.run([*COMMAND, *words], capture_output=True, check=True, env=environment)
    assert {each.name for each in folder.iterdir()} == {"nodes.yaml", "placements.csv", "report.html"}
    return {"json": ended.stdout} | {file.name: file.read_bytes() for file in files}


def test_a_generated_workload_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    first = outputs(tmp_path / "first", "1")
    assert first == outputs(tmp_path / "second", "2")
    result = json.loads(first["json"])
    assert (result["apiVersion"], result["kind"]) == ("moorage.io/v1alpha1", "Simulation")
    assert result["complete"] is True
    assert result["pods"]["Completed"] == 60
    assert result["pods"]["Created"] == len(result["placements"]) > 60
    assert list(result["utilisation"]) == list(result["fragmentation"]) == ["cpu", "memory", "nvidia.com/gpu"]
    rows = list(csv.DictReader(first["placements.csv"].decode().splitlines()))
    assert [row["name"] for row in rows] == [each["name"] for each in result["placements"]]
    assert [row["node"] for row in rows] == [each["node"] for each in result["placements"]]
    assert {row["complete"] for row in rows} == {"true"}


def test_manifests_shapes_and_a_script_give_a_table(tmp_path: Path) -> None:
    pods, script = tmp_path / "pods.yaml", tmp_path / "nodes.yaml"
    pods.write_text(
        """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: web, image: web, resources: {requests: {cpu: "2"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: large}
spec: {containers: [{name: large, image: large, resources: {requests: {cpu: "20"}}}]}
"""
    )
    script.write_text("- {at: 1h, fail: small-0}\n- {at: 2h, recover: small-0}\n")
    shape = "name=small,count=1,cpu=4,memory=8Gi,price=0.5"
    shown = run("--shape", shape, "--workload", str(pods), "--script", str(script), "--until", "3h").stdout
    lines = dict(line.split("   ", 1) for line in shown.splitlines() if "   " in line)
    assert lines["simulated time"].strip() == "3h0m0s"
    assert lines["pods created"].strip() == "3"
    assert lines["evicted"].strip() == "1"
    assert lines["running"].strip() == "1"
    assert lines["cost"].strip() == "1.00"
    assert "1         0/1 nodes are available: 1 Insufficient cpu." in shown


def test_lines_of_a_trace_can_be_skipped(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"arrival": 0, "duration": 5, "cpu": "1"}\nnonsense\n{"arrival": 3, "duration": 5}\n')
    words = ("--nodes", "1", "--workload", str(trace))
    assert f"moorage simulate: {trace}: line 2: not JSON: " in run(*words, status=2).stderr
    ended = run(*words, "--skip-bad", "-o", "json")
    assert "moorage simulate: 1 line was skipped" in ended.stderr
    assert json.loads(ended.stdout)["pods"]["Completed"] == 2


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_an_interrupted_simulation_has_results_and_all_say_so(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    trace, placements, report = (tmp_path / name for name in ("trace.jsonl", "pods.csv", "report.html"))
    os.mkfifo(trace)
    output = "json" if number is signal.SIGINT else "table"
    words = [*COMMAND, "--nodes", "1", "--workload", str(trace), "-o", output]
    words += ["--placements", str(placements), "--report", str(report)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with trace.open("w") as file:  # Returns when the simulation has begun to read.
        file.write(_lines(0, 100))
        file.flush()
        process.send_signal(number)
        file.write(_lines(100, 200))
    shown, errors = process.communicate()
    assert process.returncode == status, errors
    assert "moorage simulate: interrupted; the results are those up to then" in errors
    if output == "json":
        result = json.loads(shown)
        assert result["complete"] is False
        assert 0 < result["pods"]["Created"] < 200
    else:
        assert re.search("^interrupted +the results are those up to then$", shown, re.MULTILINE)
    with placements.open() as rows:
        assert {row["complete"] for row in csv.DictReader(rows)} == {"false"}
    assert "Interrupted: the results are those up to then." in report.read_text()
    assert {each.name for each in tmp_path.iterdir()} == {"trace.jsonl", "pods.csv", "report.html"}


def _lines(first: int, end: int) -> str:
    return "".join(
        json.dumps({"arrival": 60 * each, "duration": 30, "cpu": "1"}) + "\n" for each in range(first, end)
    )


def _deployment(path: Path) -> str:
    path.write_text(
        """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, resources: {requests: {cpu: "1"}}}]}
"""
    )
    return str(path)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--generate", "5"], "there are no nodes; give --nodes, --shape, --from or --kubeconfig"),
        (["--nodes", "5"], "there are no pods to schedule; give --workload or --generate"),
        (["--nodes", "1", "--generate", "1", "--pod-cpu", "much"], "--pod-cpu: "),
        (
            ["--nodes", "1", "--generate", "1", "--priorities", "high"],
            "--priorities: high: expected integers",
        ),
        (["--shape", "cpu=1", "--generate", "5"], "shape 'cpu=1': memory is missing"),
        (["--nodes", "1", "--workload", "none.jsonl"], "none.jsonl: No such file or directory"),
        (["--nodes", "1", "--node-cpu", "fast", "--generate", "1"], "resource cpu: "),
    ],
)
def test_bad_input_is_one_clear_line(words: list[str], problem: str) -> None:
    errors = run(*words, status=2).stderr
    assert errors.startswith(f"moorage simulate: {problem}")
    assert len(errors.splitlines()) == 1


def test_controllers_make_the_same_pods_whatever_the_hash_seed(tmp_path: Path) -> None:
    file = _deployment(tmp_path / "web.yaml")
    script = tmp_path / "nodes.yaml"
    script.write_text("- {at: 1h, drain: node-0}\n")
    shown = []
    for seed in "12":
        words = [*COMMAND, "--nodes", "2", "--workload", file, "--script", str(script), "-o", "json"]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        ended = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
        shown.append(ended.stdout)
    assert shown[0] == shown[1]
    result = json.loads(shown[0])
    assert result["complete"] is True
    assert (result["pods"]["Running"], result["pods"]["Evicted"]) == (6, 3)


def test_a_dump_with_running_and_pending_pods_is_a_cluster(tmp_path: Path) -> None:
    def pod(name: str, cpu: str, **spec: Any) -> Any:
        container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
        meta = {"name": name, "namespace": "default", "uid": name}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta,
            "spec": {"containers": [container], **spec},
        }

    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": amounts},
    }
    items = [node, pod("running", "3", nodeName="n1"), pod("small", "1"), pod("waits", "2")]
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    result = json.loads(run("--from", str(dump), "-o", "json").stdout)
    assert [(each["name"], each["node"]) for each in result["placements"]] == [("small", "n1"), ("waits", "")]
    assert result["utilisation"]["cpu"]["peak"] == 1
