"""`moorage chaos processes`: what it prints, writes and exits with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from moorage.cli.main import app
from moorage_cluster.chaos.real_processes.run import Outcome
from moorage_cluster.chaos.real_processes.scenarios import SCENARIOS, Plan
from moorage_cluster.cli import chaos_processes


def chaos(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["chaos", "processes", *arguments])


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that are played; those with an odd seed fail."""
    plans: list[Plan] = []

    def play(plan: Plan, directory: Path) -> Outcome:
        plans.append(plan)
        (directory / "server.log").write_text("said")
        violations = [f"{plan.seed} is odd"] if plan.seed % 2 else []
        return Outcome(violations, {"kill leader": 2}, acknowledged=1000, bound=10, recovery_seconds=1.25)

    monkeypatch.setattr(chaos_processes, "run_plan", play)
    return plans


def test_the_scenarios_are_listed() -> None:
    result = chaos("--list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["SCENARIO", *SCENARIOS]


def test_scenarios_take_turns_and_are_added_up(played: list[Plan], tmp_path: Path) -> None:
    options = ("--scenario", "kills", "--scenario", "stops", "--seconds", "5", "--failures", str(tmp_path))
    result = chaos(*options, "--seed", "4")
    assert result.exit_code == 0, result.output
    assert [(each.scenario, each.seed, each.seconds) for each in played] == [("kills", 4, 5), ("stops", 4, 5)]
    assert result.stdout.splitlines()[1].split() == [
        "kills",
        "1",
        "2",
        "1,000",
        "10",
        "0",
        "0",
        "1.2",
        "s",
        "0",
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_told_with_its_seed_and_its_logs_are_kept(played: list[Plan], tmp_path: Path) -> None:
    result = chaos("--scenario", "kills", "--runs", "2", "--failures", str(tmp_path), "-o", "json")
    assert result.exit_code == 1
    assert len(played) == 2
    kept = tmp_path / "processes-kills-1"
    again = "moorage chaos processes --scenario kills --seed 1 --seconds 30"
    assert f"1 is odd ({again}; logs are in {kept})" in result.stderr
    assert (kept / "server.log").read_text() == "said"
    assert json.loads((kept / "outcome.json").read_text())["violations"] == ["1 is odd"]
    (tally,) = json.loads(result.stdout)
    assert (tally["runs"], tally["failures"]) == (2, {"1": ["1 is odd"]})


def test_an_interrupted_campaign_reports_what_was_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(plan: Plan, directory: Path) -> Outcome:
        if plan.seed:
            raise KeyboardInterrupt
        return Outcome()

    monkeypatch.setattr(chaos_processes, "run_plan", interrupted)
    result = chaos("--scenario", "kills", "--runs", "3")
    assert result.exit_code == 130
    assert result.stdout.splitlines()[1].split()[:2] == ["kills", "1"]


def test_an_unknown_scenario() -> None:
    result = chaos("--scenario", "storms")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "moorage chaos processes: --scenario: there is no 'storms'; there are kills"
    )


def test_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(chaos_processes, "_MEMORY_FIGURES", tmp_path / "statm")
    result = chaos()
    assert result.exit_code == 2
    assert result.stderr == f"moorage chaos processes: it needs Linux: there is no {tmp_path}/statm\n"


def test_logs_that_cannot_be_kept(played: list[Plan], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = chaos("--scenario", "kills", "--seed", "1", "--failures", str(tmp_path / "file"))
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr
