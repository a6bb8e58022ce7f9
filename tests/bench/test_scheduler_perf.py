"""Comparison with another scheduler: a script in place of scheduler_perf's test binary."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from typer.testing import Result

from tests.bench.files import MEASURED, NODES, Files
from tests.bench.test_cli import bench

BINARY = """\
#!{python}
import json, os, sys
flags = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:])
with open({calls!r}, "a") as calls:
    print(json.dumps([os.getcwd(), flags]), file=calls)
run = len(open({calls!r}).read().splitlines())
assert os.path.exists("performance-config.yaml")
place = flags["data-items-dir"]
{body}
"""
WRITE = """
def item(metric, name, **data):
    labels = {"Metric": metric, "Name": "BenchmarkPerfScheduling/Case/tiny/" + name, "event": "-"}
    return {"data": data, "unit": "", "labels": labels}

def write(*items):
    with open(place + "/BenchmarkPerfScheduling_benchmark_misc_2026-11-16T15:16:19Z.json", "w") as file:
        json.dump({"version": "v1", "dataItems": list(items) or None}, file)
"""
SAMPLED = """
write(
    item("SchedulingThroughput", "namespace-1", Average=0.5 * run, Perc50=0.25),
    item("scheduler_scheduling_attempt_duration_seconds", "namespace-1", Average=3.0),
    item("SchedulingDuration", "namespace-1", Duration=99.0),
)
"""


class Reference:
    """A binary that notes how it was called."""

    def __init__(self, directory: Path) -> None:
        self._binary = directory / "scheduler_perf.test"
        self._calls = directory / "calls"
        etcd = directory / "etcd"
        etcd.write_text("#!/bin/sh\n")
        etcd.chmod(0o755)

    def compare(self, config: Path, body: str, *words: str) -> Result:
        text = BINARY.format(python=sys.executable, calls=str(self._calls), body=WRITE + body)
        self._binary.write_text(text)
        self._binary.chmod(0o755)
        return bench(str(config), "--compare-with", f"kube-scheduler={self._binary}", *words)

    def calls(self) -> list[tuple[str, dict[str, str]]]:
        return [json.loads(line) for line in self._calls.read_text().splitlines()]


@pytest.fixture
def reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reference:
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    return Reference(directory)


def test_both_schedulers_run_the_same_file_in_turn(files: Files, reference: Reference) -> None:
    answer = reference.compare(files.case(NODES, MEASURED), SAMPLED, "--json")
    assert answer.exit_code == 0, answer.output
    report = json.loads(answer.stdout)
    assert report["reference"] == "kube-scheduler"
    (workload,) = report["workloads"]
    assert [each["reference_pods_per_second"] for each in workload["rounds"]] == [0.5, 1.0, 1.5]
    assert all(each["sampled_pods_per_second"] > 0 for each in workload["rounds"])
    turns = [line.split(": ", 1)[1] for line in answer.stderr.splitlines() if "Case/tiny" in line]
    assert turns == [
        f"workload 1 of 1, round {number} of 3: Case/tiny{who}"
        for number in (1, 2, 3)
        for who in (" (kube-scheduler)", "")
    ]


def test_the_binary_is_reported_to_run_one_workload_in_the_directory_of_its_file(
    files: Files, reference: Reference
) -> None:
    config = files.case(NODES, MEASURED, workloads=[{"name": "5k/10+1"}])
    assert reference.compare(config, SAMPLED, "--rounds", "1").exit_code == 0
    ((directory, flags),) = reference.calls()
    assert Path(directory) == files.directory
    assert flags["test.bench"] == r"^BenchmarkPerfScheduling$/^Case$/^5k$/^10\+1$"
    assert (flags["test.run"], flags["test.benchtime"]) == ("^$", "1x")
    assert flags["perf-scheduling-label-filter"] == ""


def test_ratios_are_printed_with_their_spread_and_the_smallest_first(
    files: Files, reference: Reference
) -> None:
    slow = "write(item('SchedulingThroughput', 'x', Average=1e-3 if run > 3 else 1e-6))"
    config = files.case(NODES, MEASURED, workloads=[{"name": "far"}, {"name": "near"}])
    answer = reference.compare(config, slow)
    assert answer.exit_code == 0, answer.output
    lines = answer.stdout.splitlines()
    (smallest,) = (line for line in lines if line.startswith("smallest ratio"))
    assert re.fullmatch(r"smallest ratio: \d+\.\dx \(\d+\.\d - \d+\.\d\), Case/near", smallest)
    table = lines[lines.index(smallest) :]
    rows = [line.split()[1] for line in table if "Case/" in line and "│" in line]
    assert rows == ["Case/near", "Case/far"]
    assert any(" - " in line for line in table if "Case/near" in line)


def test_a_workload_too_short_for_a_sample_is_compared_by_its_duration(
    files: Files, reference: Reference
) -> None:
    short = "write(item('not applicable', 'x'), item('SchedulingDuration', 'x', Duration=1.5))"
    answer = reference.compare(files.case(NODES, MEASURED), short, "--json", "--rounds", "1")
    (only,) = json.loads(answer.stdout)["workloads"][0]["rounds"]
    assert only["reference_pods_per_second"] == 3 / 1.5


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("write(); print('PASS')", "it has no such workload"),
        ("print('--- FAIL: B\\n  a.go:1: parsing error: no b\\nFAIL'); sys.exit(1)", "parsing error: no b"),
        ("print('a.go:1: I1116\\nb.go:2: FATAL ERROR: etcd is gone'); sys.exit(1)", "ERROR: etcd is gone"),
        ("open(place + '/x.json', 'w').write('[]')", "x.json is not scheduler_perf's"),
        (
            "write(item('SchedulingDuration', 'a', Duration=1), item('SchedulingDuration', 'b', Duration=1))",
            "1 measurements, but 2 of the other scheduler",
        ),
    ],
    ids=["no such workload", "fails", "fails later", "no figures", "other measurements"],
)
def test_what_the_binary_cannot_do_is_one_line(
    files: Files, reference: Reference, body: str, reason: str
) -> None:
    answer = reference.compare(files.case(NODES, MEASURED), body)
    assert answer.exit_code == 1
    (failed,) = (line for line in answer.stderr.splitlines() if "failed" in line)
    assert failed.startswith("moorage bench: Case/tiny failed: ")
    assert reason in failed


def test_a_threshold_that_the_other_scheduler_misses_is_no_failure(
    files: Files, reference: Reference
) -> None:
    answer = reference.compare(files.case(NODES, MEASURED), SAMPLED + "sys.exit(1)", "--rounds", "1")
    assert answer.exit_code == 0, answer.output


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("kube-scheduler", "--compare-with: expected NAME=BINARY, not 'kube-scheduler'"),
        ("kube-scheduler=gone", "gone is not a program"),
        (f"kube-scheduler={sys.executable}", "--compare-with: scheduler_perf needs etcd, and there is none"),
    ],
)
def test_a_binary_that_cannot_run_is_one_line(
    files: Files, monkeypatch: pytest.MonkeyPatch, option: str, message: str
) -> None:
    monkeypatch.setenv("PATH", "")
    answer = bench(str(files.case(NODES, MEASURED)), "--compare-with", option)
    assert answer.exit_code == 1
    assert message in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_the_binary_reads_one_file_name_only(files: Files, reference: Reference) -> None:
    other = files.case(NODES, MEASURED).rename(files.directory / "other.yaml")
    answer = reference.compare(other, SAMPLED)
    assert answer.exit_code == 1
    assert "scheduler_perf reads performance-config.yaml only, not other.yaml" in answer.stderr


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interrupted_run_keeps_what_it_has_and_ends_the_other_scheduler(
    files: Files, reference: Reference, tmp_path: Path, name: str, status: int
) -> None:
    interrupt = f"os.kill(os.getppid(), signal.{name})"
    body = f"import signal, time\nif run == 2:\n    {interrupt}\n    time.sleep(600)\n"
    config = files.case(NODES, MEASURED, workloads=[{"name": "a"}, {"name": "b"}, {"name": "c"}])
    output = tmp_path / "report.json"
    answer = reference.compare(config, body + SAMPLED, "--rounds", "1", "--output", str(output))
    assert answer.exit_code == status
    assert f"moorage bench: interrupted by {name}: 1 of 3 workloads are measured" in answer.stderr
    assert "Case/a" in answer.stdout
    assert [each["name"] for each in json.loads(output.read_text())["workloads"]] == ["Case/a"]
