"""`moorage trace show`, and traces and tables of placements with `moorage simulate`."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet
from typer.testing import CliRunner, Result

from moorage.cli.main import app

TRACE = """\
{"arrival": 0, "duration": 60, "cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 1}
{"arrival": 90.5, "duration": 30, "cpu": "2", "memory": "2Gi"}
{"arrival": 3600, "priority": 7}
"""
VMS = "a,s,d,600,900,0,0,0,Unknown,2,4\nb,s,d,0,300,0,0,0,Unknown,4,8\n"


def run(*words: object, status: int = 0) -> Result:
    result = CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "120"})
    assert result.exit_code == status, result.output
    return result


def test_a_trace_is_shown_in_figures(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(TRACE)
    assert run("trace", "show", path).stdout == (
        "FIGURE            VALUE\n"
        "pods              3\n"
        "arrivals          from 0s to 1h0m0s\n"
        "with a run time   2\n"
        "run time          mean 45s, at most 1m0s\n"
        "cpu               requested by 2: mean 1250m, at most 2\n"
        "memory            requested by 2: mean 1536Mi, at most 2Gi\n"
        "nvidia.com/gpu    requested by 1: mean 1.0, at most 1\n"
    )


def test_a_trace_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "vmtable.csv"
    path.write_text(f"{VMS}junk\n")
    problem = f"{path}: line 3: 1 column; vmtable has 11"
    assert run("trace", "show", path, status=2).stderr == f"moorage trace show: {problem}\n"
    shown = run("trace", "show", path, "--skip-bad")
    assert shown.stderr == (
        f"moorage trace show: skipped: {problem}\nmoorage trace show: 1 line was skipped\n"
    )
    assert "pods              2\n" in shown.stdout
    bad_unit = run("trace", "show", path, "--trace-unit", "cpu=many", status=2).stderr
    assert bad_unit.startswith("moorage trace show: trace unit 'cpu=many': cpu: ")


def test_a_recording_needs_a_name_that_says_its_form_and_a_folder(tmp_path: Path) -> None:
    named = run("trace", "record", "-o", tmp_path / "t.txt", status=2).stderr
    assert named.endswith("t.txt: the name of a trace ends in .jsonl, .csv, .jsonl.gz, .csv.gz, .parquet\n")
    config = tmp_path / "config"
    config.write_text(
        "{clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], current-context: c, "
        "contexts: [{name: c, context: {cluster: c}}]}"
    )
    nowhere = run("trace", "record", "--kubeconfig", config, "-o", tmp_path / "none/t.csv", status=2).stderr
    assert nowhere.endswith("t.csv: cannot be written: No such file or directory\n")
    dead = run("trace", "record", "--kubeconfig", config, "-o", tmp_path / "t.csv", status=2).stderr
    assert dead.startswith("moorage trace record: the API server does not answer: ")
    assert list(tmp_path.iterdir()) == [config]


def test_placements_are_the_same_in_csv_and_parquet(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text(TRACE)
    words = ("simulate", "--nodes", "1", "--workload", trace, "-o", "json", "--placements")
    placements = json.loads(run(*words, tmp_path / "p.csv").stdout)["placements"]
    run(*words, tmp_path / "p.parquet")
    rows = parquet.read_table(tmp_path / "p.parquet").to_pylist()
    assert rows == [{**each, "complete": "true"} for each in placements]
    assert [row["node"] for row in rows] == ["", "node-0", "node-0"], "there is no GPU"
    with (tmp_path / "p.csv").open(newline="") as file:
        texts = [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]
        assert list(csv.DictReader(file)) == texts
    wrong = run(*words, tmp_path / "p.xls", status=2).stderr
    assert wrong.endswith("p.xls: the name of a table of placements ends in .csv, .csv.gz, .parquet\n")


def test_parquet_without_its_library_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet", raising=False)
    path = tmp_path / "t.parquet"
    problem = f"{path}: needs pyarrow: pip install 'moorage[parquet]'\n"
    assert run("trace", "record", "-o", path, status=2).stderr.endswith(problem)
    assert run("trace", "show", path, status=2).stderr.endswith(problem)
    words = ("simulate", "--nodes", "1", "--generate", "1", "--placements", path)
    assert run(*words, status=2).stderr.endswith(problem)


def test_a_bad_line_leaves_nothing_behind(tmp_path: Path) -> None:
    trace, placements = tmp_path / "t.jsonl", tmp_path / "p.csv"
    trace.write_text(f"{TRACE}junk\n")
    report = tmp_path / "r.html"
    words = ("simulate", "--nodes", "1", "--workload", trace, "--placements", placements, "--report", report)
    assert f"{trace}: line 4: not JSON: " in run(*words, status=2).stderr
    assert list(tmp_path.iterdir()) == [trace]
    run(*words, "--skip-bad")
    assert {each.name for each in tmp_path.iterdir()} == {"t.jsonl", "p.csv", "r.html"}


def test_a_published_trace_is_simulated_in_the_order_of_arrival(tmp_path: Path) -> None:
    trace = tmp_path / "vms"
    trace.write_text(VMS)
    words = ("simulate", "--nodes", "1", "--workload", trace, "--trace-format", "azure-2019", "-o", "json")
    placements = json.loads(run(*words).stdout)["placements"]
    assert [(each["name"], each["arrivedAt"], each["endedAt"]) for each in placements] == [
        ("vm-2", 0, 300),
        ("vm-1", 600, 900),
    ]


def test_an_interrupted_sort_ends_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    trace, folder = tmp_path / "vmtable.csv", tmp_path / "tmp"
    os.mkfifo(trace)
    folder.mkdir()
    words = [sys.executable, "-m", "moorage", "simulate", "--nodes", "1", "--workload", str(trace)]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    with trace.open("w") as file:  # Returns when the sort has begun to read.
        file.write("a,s,d,600,900,0,0,0,Unknown,2,4\n" * 120_000)
        file.flush()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
    assert process.returncode == 130, errors
    assert (output, "Traceback" in errors) == ("", False)
    assert list(folder.iterdir()) == []
