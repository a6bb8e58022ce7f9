from __future__ import annotations

import builtins
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from moorage.bench.results import BenchmarkReport, read_report, write_report
from moorage.cli.main import app
from tests.bench.files import MEASURED, NODES, Files


@pytest.fixture
def config(files: Files) -> str:
    return str(files.case(NODES, MEASURED))


def bench(*words: str) -> Result:
    return CliRunner().invoke(app, ["bench", *words])


def test_figures_as_json(config: str) -> None:
    answer = bench(config, "--json")
    assert answer.exit_code == 0, answer.output
    report = json.loads(answer.stdout)
    assert report["mode"] == "engine"
    (workload,) = report["workloads"]
    assert workload["name"] == "Case/tiny"
    assert workload.keys() >= {
        "pods",
        "nodes",
        "notes",
        "threshold",
        "plugins",
        "extension_points",
        "latency_seconds",
    }
    assert workload["pods_per_second"].keys() >= {"average", "p50", "p90", "p95", "p99"}
    assert workload["attempt_seconds"].keys() >= {"average", "p50", "p90", "p99", "results"}
    assert workload["cpu_seconds_per_pod"].keys() == {"scheduler", "server", "generator"}
    assert workload["peak_memory_bytes"].keys() == {"scheduler", "server", "generator"}


def test_figures_as_tables(config: str, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    before.write_text(bench(config, "--json").stdout)
    answer = bench(config, "--engine", "--compare", str(before))
    assert answer.exit_code == 0, answer.output
    for text in (
        "Case/tiny",
        "pods/s",
        "extension point",
        "PreFilter",
        "new / old",
        "note: too short",
    ):
        assert text in answer.stdout
    report = json.loads(bench(config, "--json", "--compare", str(before)).stdout)
    ratios = report["compared"]["Case/tiny"]
    assert ratios["pods_per_second"] > 0
    assert ratios["peak_memory_bytes"] > 0


def test_a_report_is_written_after_every_workload(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "report.json"
    written: list[list[str]] = []

    def write(path: Path, report: BenchmarkReport) -> None:
        write_report(path, report)
        written.append([each.name for each in read_report(output).workloads])

    monkeypatch.setattr("moorage.cli.bench.write_report", write)
    config = str(files.case(NODES, MEASURED, workloads=[{"name": "a"}, {"name": "b"}]))
    assert bench(config, "--output", str(output)).exit_code == 0
    assert written == [[], ["Case/a"], ["Case/a", "Case/b"], ["Case/a", "Case/b"]]
    assert "new / old" in bench(config, "--compare", str(output)).stdout
    assert [each.name for each in tmp_path.glob("*report*")] == ["report.json"]


def test_rounds_give_the_median_and_the_spread(config: str) -> None:
    report = json.loads(bench(config, "--json", "--rounds", "3").stdout)
    (workload,) = report["workloads"]
    rates = sorted(each["pods_per_second"] for each in workload["rounds"])
    assert len(rates) == 3
    assert workload["pods_per_second"]["average"] == rates[1]
    table = bench(config, "--rounds", "3").stdout
    assert re.search(r"Case/tiny .* [\d,]+ \([\d,]+ - [\d,]+\)", table)


def test_progress_goes_to_standard_error(config: str) -> None:
    answer = bench(config, "--json")
    assert answer.stderr == "moorage bench: workload 1 of 1: Case/tiny\n"
    json.loads(answer.stdout)


def test_only_some_are_run(files: Files) -> None:
    sizes = [{"name": "a", "labels": ["short"]}, {"name": "b", "labels": ["long"]}]
    config = str(files.case(NODES, MEASURED, workloads=sizes))

    def names(*words: str) -> list[str]:
        return [each["name"] for each in json.loads(bench(config, "--json", *words).stdout)["workloads"]]

    assert names() == ["Case/a", "Case/b"]
    assert names("--only", "Case/b") == ["Case/b"]
    assert names("--label", "-long") == ["Case/a"]


PLUGIN = """
class Widow:
    name = "Widow"

    def filter_node(self, cycle, pod, node):
        return "no widow"
"""


def test_a_configuration_and_plugins_are_measured(files: Files, tmp_path: Path) -> None:
    workload = str(files.case(NODES, MEASURED, workloads=[{"name": "tiny"}]))
    (tmp_path / "widow.py").write_text(PLUGIN)
    configuration = tmp_path / "scheduler.yaml"
    without = {"multiPoint": {"disabled": [{"name": "Widow"}]}}
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    profile = {"schedulerName": "default-scheduler", "plugins": without}
    configuration.write_text(json.dumps({**header, "profiles": [profile]}))
    plugin = ("--plugin", str(tmp_path / "widow.py"), "--timeout", "100ms")
    refused = bench(workload, *plugin)
    assert refused.exit_code == 1
    assert "0 of 3 pods are scheduled" in refused.stderr
    assert bench(workload, *plugin, "--config", str(configuration)).exit_code == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        pytest.param(("--config", "missing.yaml"), "missing.yaml: No such file", id="no file"),
        pytest.param(("--plugin", "missing.py"), "missing.py: No such file", id="no plugin"),
        pytest.param(("--plugin", "{plugin}", "--kubeconfig", "k"), "its own configuration", id="cluster"),
        pytest.param(("--plugin", "{plugin}", "--compare-with", "a=b"), "cannot have this", id="other"),
    ],
)
def test_configurations_that_cannot_be_measured_are_errors(
    config: str, tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    (tmp_path / "widow.py").write_text(PLUGIN)
    answer = bench(config, *(word.format(plugin=tmp_path / "widow.py") for word in words))
    assert answer.exit_code == 1
    assert reason in answer.stderr
    assert answer.stderr.count("\n") == 1


UNSUPPORTED = {"DRAListTypeAttributes": True}


def test_what_is_refused_or_fails_is_reported(files: Files) -> None:
    size = [{"name": "tiny"}]
    config = files.cases(
        {"name": "A", "workloadTemplate": [MEASURED], "workloads": size},
        {"name": "B", "workloadTemplate": [MEASURED], "workloads": size, "featureGates": UNSUPPORTED},
    )
    refused = bench(str(config), "--only", "B")
    assert refused.exit_code == 0
    assert "B/tiny not run: feature gate DRAListTypeAttributes: lists as attributes" in refused.stderr
    failed = bench(str(config), "--timeout", "100ms")
    assert failed.exit_code == 1
    assert "A/tiny failed: op 0: after 0.1 s 0 of 3 pods are scheduled" in failed.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--http", "--engine"], "--engine, --http and --kubeconfig: give one of them"),
        (["--only", "Nothing"], "--only: there is no workload 'Nothing'"),
        (["--label", "nothing"], "--label: no workload has these labels"),
        (["--profile", "x.svg"], "--profile: x.svg: the name ends in .html, .json (speedscope) or .txt"),
        (["--profile", "x.html", "--http"], "--profile: only what runs in this process can be looked at"),
        (["--compare", "gone.json"], "gone.json: No such file or directory"),
        (["--kubeconfig", "gone"], "there is no kubeconfig at gone"),
        (["--output", "gone/report.json"], "gone/report.json: No such file or directory"),
    ],
)
def test_wrong_words(config: str, words: list[str], message: str) -> None:
    answer = bench(config, *words)
    assert answer.exit_code == 1
    assert answer.stderr.startswith("moorage bench: ")
    assert message in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_wrong_file(files: Files) -> None:
    answer = bench(str(files.case({"opcode": "juggle"})))
    assert answer.exit_code == 1
    assert answer.stderr == f"moorage bench: {files.path}: Case: op 0: unknown opcode 'juggle'\n"
    old = files.directory / "old.json"
    old.write_text("{}")
    assert "not a report of moorage bench" in bench(str(files.path), "--compare", str(old)).stderr


@pytest.mark.parametrize(
    ("name", "content"), [("p.html", "<html"), ("p.json", "speedscope"), ("p.txt", "Scheduler")]
)
def test_a_profile(config: str, tmp_path: Path, name: str, content: str) -> None:
    pytest.importorskip("pyinstrument")
    answer = bench(config, "--profile", str(tmp_path / name))
    assert answer.exit_code == 0, answer.output
    assert content in (tmp_path / name).read_text()


def test_a_profile_needs_a_profiler(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    really_import = builtins.__import__

    def without(name: str, *more: Any, **named: Any) -> Any:
        if name.startswith("pyinstrument"):
            raise ImportError(name)
        return really_import(name, *more, **named)

    for name in [each for each in sys.modules if each.startswith("pyinstrument")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    answer = bench(config, "--profile", "p.html")
    assert answer.exit_code == 1
    assert "pyinstrument is not installed; get it with: pip install 'moorage[profile]'" in answer.stderr
