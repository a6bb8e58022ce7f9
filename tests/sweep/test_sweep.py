"""Sweeps: what is run, what is kept, and what comes out."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from moorage.api.decode import InputError
from moorage.cli.main import app
from moorage.sweep.engine import TaskResults
from moorage.sweep.figures import FIGURE_NAMES
from moorage.sweep.local_engine import LocalEngine
from moorage.sweep.plan import Plan, read_plan
from moorage.sweep.report import html_report
from moorage.sweep.results import SweepResult
from moorage.sweep.store import ResultStore
from moorage.sweep.sweep import run_sweep
from moorage.sweep.task import Contents, Task, TaskResult
from moorage.sweep.worker import run_task
from tests.sweep.studies import STRATEGY, WEIGHT, parameter, planned, study, written

ROOT = Path(__file__).parent.parent.parent


class HereEngine:
    """Runs tasks in this process, in a random order, and counts them."""

    def __init__(self, seed: int = 0, most: int | None = None) -> None:
        """most: after how many of them it is interrupted."""
        self._random = random.Random(seed)
        self._most = most
        self.keys: list[str] = []

    def run(self, tasks: Mapping[str, Task], contents: Contents) -> TaskResults:
        for key in self._random.sample(list(tasks), len(tasks)):
            if len(self.keys) == self._most:
                raise KeyboardInterrupt
            self.keys.append(key)
            yield key, run_task(tasks[key], contents)


def swept(plan: Plan, file: Path, engine: Any, **how: bool) -> SweepResult:
    with ResultStore(file, **how) as store:
        return run_sweep(plan, store, engine, lambda: None)


def command(*words: str) -> Result:
    return CliRunner().invoke(app, ["sweep", *words])


def two_by_two(folder: Path, **fields: Any) -> Plan:
    configurations = [
        {"name": "a", "parameters": [parameter("s", STRATEGY, values=["LeastAllocated", "MostAllocated"])]}
    ]
    return planned(folder, configurations=configurations, seeds=2, **fields)


def test_results_do_not_depend_on_the_order_of_tasks(tmp_path: Path) -> None:
    plan = two_by_two(tmp_path)
    first, second = (swept(plan, tmp_path / f"{seed}.jsonl", HereEngine(seed)) for seed in (1, 2))
    assert (tmp_path / "1.jsonl").read_text() != (tmp_path / "2.jsonl").read_text()
    assert first == second
    assert html_report(first) == html_report(second)
    assert first.complete
    assert [len(row.results) for row in first.rows] == [2, 2]


def test_an_interrupted_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    plan, file = two_by_two(tmp_path), tmp_path / "results.jsonl"
    begun, resumed, again = HereEngine(most=3), HereEngine(), HereEngine()
    partial = swept(plan, file, begun)
    assert not partial.complete
    assert sorted(len(row.results) for row in partial.rows) == [1, 2]
    assert "Interrupted" in html_report(partial)
    complete = swept(plan, file, resumed)
    assert len(resumed.keys) == 1
    assert {*begun.keys, *resumed.keys} == set(plan.tasks)
    assert complete == swept(plan, tmp_path / "other.jsonl", HereEngine())
    assert complete == swept(plan, file, again)
    assert again.keys == []
    fresh = HereEngine()
    assert swept(plan, file, fresh, is_fresh=True) == complete
    assert len(fresh.keys) == 4
    assert len(file.read_text().splitlines()) == 4


def test_more_seeds_run_only_what_is_new(tmp_path: Path) -> None:
    file, more = tmp_path / "results.jsonl", HereEngine()
    swept(planned(tmp_path, seeds=2), file, HereEngine())
    result = swept(planned(tmp_path, seeds=3), file, more)
    assert len(more.keys) == 1
    assert [each.seed for each in result.rows[0].results] == [0, 1, 2]


def test_a_line_that_was_not_written_to_its_end_is_dropped(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    for end in range(60):
        file.write_bytes(b"")
        with ResultStore(file) as store:
            store.add("a", {"cost": 1.5})
            store.add("b", {"cost": 2.5})
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) - end])
        with ResultStore(file) as store:
            lines = (whole[: len(whole) - end]).count(b"\n")
            assert list(store.figures) == ["a", "b"][:lines]
            store.add("b", {"cost": 2.5})
        with ResultStore(file) as store:
            assert store.figures["b"] == {"cost": 2.5}


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine\n")
    with pytest.raises(InputError, match=r"notes.txt: line 1: no result of a sweep"):
        ResultStore(file)
    assert file.read_text() == "mine\n"


def test_two_sweeps_do_not_write_one_file(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    with ResultStore(file), pytest.raises(InputError, match="another sweep writes it"):
        ResultStore(file)
    ResultStore(file).__exit__()


def test_a_failed_task_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text("arrival,duration,cpu\n0,10,1\n")
    (tmp_path / "bad.csv").write_text("arrival,duration,cpu\n0,10,1\nlate,10,1\n")
    scenario = study()["scenarios"][0]
    scenarios = [
        {**scenario, "name": name, "workload": {"files": [f"{name}.csv"]}} for name in ("bad", "good")
    ]
    plan = planned(tmp_path, scenarios=scenarios)
    result = swept(plan, tmp_path / "results.jsonl", HereEngine())
    assert result.complete
    assert [len(row.results) for row in result.rows] == [0, 1]
    (failure,) = result.failures
    assert (failure.configuration, failure.scenario, failure.seed) == ("default", "bad", 0)
    assert failure.reason == "bad.csv: line 3: arrival: 'late' is not a number of seconds"
    assert "<h2>Failed</h2>" in html_report(result)
    again = HereEngine()
    swept(plan, tmp_path / "results.jsonl", again)
    assert len(again.keys) == 1, "only what failed is tried again"


def test_plugins_with_what_they_import_are_run_from_their_contents(tmp_path: Path) -> None:
    for name, verdict in (("closed", "closed today"), ("open", "")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "reasons.py").write_text(f"REASON = {verdict!r}\n")
        (folder / "gate.py").write_text(_GATE)
    plan = planned(
        tmp_path,
        configurations=[{"name": name, "plugins": [f"{name}/gate.py"]} for name in ("closed", "open")],
        scenarios=[{**study()["scenarios"][0], "until": "1h"}],
        objectives=[{"figure": "pods.Completed"}, {"figure": "pods.Pending"}],
    )
    for folder in (tmp_path / "closed", tmp_path / "open"):
        for file in folder.iterdir():
            file.unlink()
    rows = swept(plan, tmp_path / "results.jsonl", HereEngine()).rows
    assert [each.results[0].figures["pods.Pending"] for each in rows] == [6, 0]


_GATE = """
import reasons


class Gate:
    name = "Gate"

    def filter(self, cycle, pod, nodes):
        label = "no-such-label" if reasons.REASON else "kubernetes.io/hostname"
        return nodes.label(label).exists().otherwise(reasons.REASON or "no name")
"""


def test_another_version_of_moorage_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(tmp_path)
    monkeypatch.setattr("moorage.sweep.worker.__version__", "0.0.1")
    (failure,) = swept(plan, tmp_path / "results.jsonl", HereEngine()).failures
    assert re.fullmatch(r"the worker has moorage 0\.0\.1, the study needs [\d.]+", failure.reason)


def results_by_key(plan: Plan, costs: list[float], waits: list[float]) -> dict[str, dict[str, float]]:
    figures = zip(costs, waits, strict=True)
    return {
        key: {"cost": cost, "waitingSeconds.mean": wait}
        for key, (cost, wait) in zip(plan.tasks, figures, strict=True)
    }


class MadeUpEngine:
    """Has the results of all tasks."""

    def __init__(self, figures: Mapping[str, dict[str, float]]) -> None:
        self._figures = figures

    def run(self, tasks: Mapping[str, Task], contents: Contents) -> TaskResults:
        for key in tasks:
            yield key, TaskResult(self._figures[key])


@pytest.mark.parametrize(
    ("goal", "best"), [("minimise", [True, True, False, False]), ("maximise", [False, True, False, True])]
)
def test_the_front_is_that_of_the_first_two_objectives(tmp_path: Path, goal: str, best: list[bool]) -> None:
    plan = planned(
        tmp_path,
        configurations=[{"name": "a", "parameters": [parameter("w", WEIGHT, values=[1, 2, 3, 4])]}],
        objectives=[{"figure": "cost"}, {"figure": "waitingSeconds.mean", "goal": goal}],
    )
    figures = results_by_key(plan, [1, 0.5, 1.5, 2], [10, 20, 15, 30])
    result = swept(plan, tmp_path / "results.jsonl", MadeUpEngine(figures))
    assert [row.best for row in result.rows] == best
    assert len(re.findall("<circle ", html_report(result))) == 4


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if name in ("src", "href")]


def test_all_forms_of_output_have_the_same_figures(tmp_path: Path) -> None:
    document = study(
        configurations=[{"name": "<a>", "parameters": [parameter("w", WEIGHT, values=[1, 2])]}], seeds=3
    )
    file, report = str(written(tmp_path, document)), tmp_path / "report.html"
    swept(read_plan(Path(file)), tmp_path / "study.results.jsonl", HereEngine())
    table, rows, whole = (
        command(file, "-o", form, "--report", str(report)) for form in ("table", "csv", "json")
    )
    assert (table.exit_code, rows.exit_code, whole.exit_code) == (0, 0, 0)
    assert f"moorage sweep: 6 of 6 results are in {tmp_path}/study.results.jsonl" in table.stderr
    result = json.loads(whole.stdout)
    assert (result["apiVersion"], result["kind"], result["complete"]) == (
        "moorage.io/v1alpha1",
        "Sweep",
        True,
    )
    cells = list(csv.DictReader(io.StringIO(rows.stdout)))
    assert [each["w"] for each in cells] == ["1", "2"]
    lines = table.stdout.splitlines()
    for row, cell, line in zip(result["rows"], cells, lines[1:], strict=True):
        found = row["estimates"]["cost"]
        assert float(cell["cost.mean"]) == found["mean"]
        assert float(cell["cost.high"]) == pytest.approx(found["mean"] + found["halfWidth"])
        assert f"{found['mean']:.4f} ± {found['halfWidth']:.4f}"[:5] in line
        assert line.startswith("*") == row["best"]
    links = _Links()
    links.feed(report.read_text())
    assert links.found == []
    assert "&lt;a&gt; w=1" in report.read_text()


def test_the_document_shows_the_example_and_what_it_gives(tmp_path: Path) -> None:
    file, results = ROOT / "examples/study.yaml", tmp_path / "results.jsonl"
    swept(read_plan(file), results, HereEngine())
    document = (ROOT / "docs/how-to/sweeping.md").read_text()
    assert file.read_text() in document
    assert command(str(file), "--results", str(results)).stdout in document
    assert all(f"`{name}`" in document for name in FIGURE_NAMES)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--on", "spark://here"], "--on: spark://here: expected dask://HOST:PORT"),
        (["--on", "dask://here:1", "--jobs", "2"], "--jobs: the processes of --on are those of its workers"),
        (
            ["--results", "/no/such/folder/a.jsonl"],
            "/no/such/folder/a.jsonl: cannot be written: No such file",
        ),
        (["--on", "dask://here:1"], "dask://: distributed is not installed; pip install 'moorage[dask]'"),
    ],
)
def test_a_place_that_is_none_is_one_line(
    words: list[str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    ended = command(str(written(tmp_path, study())), *words)
    assert ended.exit_code == 2
    assert ended.stderr.startswith(f"moorage sweep: {problem}")
    assert len(ended.stderr.splitlines()) == 1


def test_all_that_is_wrong_with_a_study_is_said_line_by_line(tmp_path: Path) -> None:
    file = written(tmp_path, study(seeds=0, search={"type": "best"}))
    ended = command(str(file))
    assert ended.exit_code == 2
    assert [line.split(":")[:3] for line in ended.stderr.splitlines()] == [
        ["moorage sweep", f" {file}", " search.type"],
        ["moorage sweep", f" {file}", " seeds"],
    ]


def test_processes_that_die_cost_only_their_own_task(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text(_DEADLY)
    (tmp_path / "token").touch()
    (tmp_path / "config.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{pluginConfig: [{name: Deadly, args: {token: none}}]}]\n"
    )
    token = parameter(
        "token", "profiles[0].pluginConfig[Deadly].args.token", values=["", str(tmp_path / "token")]
    )
    plan = planned(
        tmp_path,
        configurations=[
            {"name": "deadly", "file": "config.yaml", "plugins": ["deadly.py"], "parameters": [token]},
            {"name": "default"},
        ],
    )
    result = swept(plan, tmp_path / "results.jsonl", LocalEngine(2))
    assert [len(row.results) for row in result.rows] == [0, 1, 1]
    assert [each.reason for each in result.failures] == ["its process died, 2 times"]
    assert not (tmp_path / "token").exists()
    assert result.rows[2].results == swept(planned(tmp_path), tmp_path / "here", HereEngine()).rows[0].results


_DEADLY = """
import os
import signal
from pathlib import Path


class Deadly:
    name = "Deadly"

    def __init__(self, args, handle):
        self._token = args["token"]

    def filter(self, cycle, pod, nodes):
        if not self._token or Path(self._token).exists():
            Path(self._token or "none").unlink(missing_ok=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return nodes.label("kubernetes.io/hostname").exists().otherwise("no name")
"""
