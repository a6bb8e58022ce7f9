"""`moorage soak --virtual`: what it measures, finds, prints, draws and exits with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from moorage.cli.main import app
from moorage_cluster.soak import users, workloads
from moorage_cluster.soak.run import SoakSettings, run_soak
from moorage_cluster.soak.samples import BLOCKS, Sample
from moorage_cluster.soak.trends import trends

MINUTE = ("--virtual", "--hours", "0.0167", "--live", "30", "--templates", "80", "--nodes", "4")


def soak(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["soak", *arguments])


def test_a_report_and_a_chart(tmp_path: Path) -> None:
    chart = tmp_path / "soak.svg"
    result = soak(*MINUTE, "--samples", "4", "-o", "json", "--chart", str(chart))
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    last = report["samples"][-1]
    assert len(report["samples"]) == 4
    assert last["seconds"] == pytest.approx(60.1, abs=1)
    assert last["created"] > 110
    assert last["created"] * 0.9 - 10 < last["bound"] <= last["created"]
    assert last["usage"]["inside"]["tasks"] > 10
    assert report["leaks"] == []
    drawn = ElementTree.fromstring(chart.read_text())
    assert len(list(drawn)) == 7


def test_a_table_and_a_chart_that_cannot_be_written(tmp_path: Path) -> None:
    chart = tmp_path / "missing" / "soak.svg"
    result = soak("--virtual", "--hours", "0.002", "--samples", "1", "--no-gangs", "--chart", str(chart))
    assert result.stdout.splitlines()[0].split()[:3] == ["HOURS", "PODS", "MIB"]
    assert "Fewer than 16 samples" in result.stdout
    assert "cannot be written" in result.stderr
    assert result.exit_code == 2


def test_too_few_templates() -> None:
    result = soak("--virtual", "--templates", "50", "--live", "30")
    assert result.exit_code == 2
    assert result.stderr == "moorage soak: --templates: 50 are too few for 30 pods at a time\n"


def test_what_is_kept_of_each_pod_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    new_workload = workloads.new_workload

    def leaking(*arguments: Any, **options: Any) -> Any:
        workload = new_workload(*arguments, **options)
        kept.extend({"a": [number]} for number in range(2000))
        return workload

    monkeypatch.setattr(users, "new_workload", leaking)
    samples: list[Sample] = []
    run_soak(SoakSettings(16.0, 2.0, 10, 50, 2, 16, 0, has_groups=False, is_virtual=True), samples.append)
    leaks = {each.what for each in trends(samples) if each.is_leak}
    assert {BLOCKS, "objects of builtins.list"} <= leaks
