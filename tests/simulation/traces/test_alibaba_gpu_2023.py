"""Alibaba's cluster-trace-gpu-v2023: pods and nodes with GPUs that are shared, and both in a simulation."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from moorage.cli.main import app
from tests.simulation.traces.reading import GIB, assert_bad, assert_unreadable, read, requests

HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
    "scheduled_time"
)
PODS = f"""{HEADER}
openb-pod-0001,6000,12288,1,460,,LS,Running,427061,12902960,427071
openb-pod-0000,12000,16384,8,1000,V100M16|V100M32|V100M32,LS,Running,0,12537496,0
openb-pod-0061,11908,47104,0,0,,BE,Pending,10001278,10001403,
"""
NODES = """sn,cpu_milli,memory_mib,gpu,model
openb-node-0000,32000,262144,0,
openb-node-0228,128000,786432,8,V100M32
"""


def test_pods_request_whole_gpus_and_thousandths(tmp_path: Path) -> None:
    path = tmp_path / "openb_pod_list_default.csv"
    path.write_text(PODS)
    whole, part, without = read(path)
    assert (whole.name, whole.at_seconds, whole.duration_seconds) == ("openb-pod-0000", 0, 12537496)
    assert requests(whole) == {
        "cpu": "12000m",
        "memory": str(16 * GIB),
        "nvidia.com/gpu": "8",
        "alibabacloud.com/gpu-milli": "8000",
    }
    assert whole.node_labels == (("alibabacloud.com/gpu-card-model", ("V100M16", "V100M32")),)
    assert (part.at_seconds, part.duration_seconds, part.node_labels) == (427061, 12902960 - 427071, ())
    assert requests(part) == {
        "cpu": "6000m",
        "memory": str(12 * GIB),
        "alibabacloud.com/gpu-milli": "460",
    }
    assert (without.at_seconds, without.duration_seconds) == (10001278, 125), "it was never scheduled"
    assert requests(without) == {"cpu": "11908m", "memory": str(46 * GIB)}


def test_lists_without_times_arrive_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "openb_pod_list_multigpu20.csv"
    path.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,1024,2,1000\n")
    (pod,) = read(path)
    assert (pod.at_seconds, pod.duration_seconds) == (0, None)


def test_bad_lines_and_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "openb_pod_list_x.csv"
    path.write_text(f"{PODS}openb-pod-9,lots,1,0,0,,LS,Running,0,1,0\n")
    assert_bad(path, "line 5: cpu_milli: 'lots' is not an amount", remaining=3)
    path.write_text(f"{PODS}openb-pod-9,1,1\n")
    assert_bad(path, "line 5: 3 columns; the header has 11", remaining=3)
    path.write_text("name,cpu\na,1\n")
    assert_unreadable(path, "line 1: the header has no column cpu_milli")
    path.write_text("")
    assert_unreadable(path, "there are no pods in it")


def test_the_nodes_of_the_trace_run_its_pods(tmp_path: Path) -> None:
    pods, nodes = tmp_path / "openb_pod_list_default.csv", tmp_path / "openb_node_list_all_node.csv"
    pods.write_text(
        f"{HEADER}\n"
        "whole,12000,16384,8,1000,V100M16|V100M32,LS,Running,0,60,0\n"
        "part,6000,12288,1,460,,LS,Running,10,60,10\n"
        "without,11908,47104,0,0,,BE,Pending,20,60,\n"
        "other,1000,1024,1,1000,T4,BE,Pending,70,80,70\n"
    )
    nodes.write_text(NODES)
    words = ["simulate", "--from", str(nodes), "--workload", str(pods), "-o", "json"]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 0, ended.output
    placed = {each["name"]: each for each in json.loads(ended.stdout)["placements"]}
    assert placed["whole"]["node"] == "openb-node-0228"
    assert placed["part"]["boundAt"] == placed["whole"]["endedAt"], "all GPUs were taken"
    assert placed["without"]["boundAt"] == 20
    assert placed["other"]["node"] == "", "no node has GPUs of its model"
