"""`moorage chaos`: what it prints, writes and exits with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from moorage.cli.main import app
from moorage_cluster.chaos.scenarios import SCENARIOS, new_script
from moorage_cluster.chaos.script import read_script, write_script
from tests.chaos.mutations import MUTATIONS


def chaos(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["chaos", *arguments])


def test_the_scenarios_are_listed() -> None:
    result = chaos("--list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["SCENARIO", *SCENARIOS]


def test_a_campaign_that_holds(tmp_path: Path) -> None:
    result = chaos("--scenario", "requests", "--runs", "2", "-j", "1", "--failures", str(tmp_path / "f"))
    assert result.exit_code == 0, result.output
    header, line = result.stdout.splitlines()
    assert header.split()[:2] == ["SCENARIO", "RUNS"]
    assert line.split()[:2] == ["requests", "2"]
    assert line.split()[-1] == "0"
    assert not (tmp_path / "f").exists()


def test_a_report_as_json() -> None:
    result = chaos("--scenario", "watches", "--runs", "1", "-j", "1", "-o", "json")
    (tally,) = json.loads(result.stdout)
    assert tally["scenario"] == "watches"
    assert tally["runs"] == 1
    assert tally["failures"] == []


def test_the_outcome_of_a_script_as_json(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    write_script(new_script("watches", 0), path)
    outcome = json.loads(chaos("--script", str(path), "-o", "json").stdout)
    assert outcome["violations"] == []
    assert outcome["bound"] > 0


def test_a_failure_is_written_and_can_be_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        MUTATIONS["no assuming"](patch)
        result = chaos(
            "--scenario", "requests", "--runs", "1", "-j", "1", "--no-shrink", "--failures", str(tmp_path)
        )
        assert result.exit_code == 1
        path = tmp_path / "requests-0.json"
        assert f"(moorage chaos --script {path})" in result.stderr
        again = chaos("--script", str(path))
        assert again.exit_code == 1
        assert "over-committed" in again.stdout
    assert read_script(path) == new_script("requests", 0)
    mended = chaos("--script", str(path))
    assert mended.exit_code == 0
    assert mended.stdout.startswith("everything held; ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--scenario", "storms"), "moorage chaos: --scenario: there is no 'storms'; there are requests, "),
        (("--script", "none.json"), "moorage chaos: none.json: cannot be read: No such file or directory"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], message: str) -> None:
    result = chaos(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)


def test_failures_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS["no assuming"](monkeypatch)
    (tmp_path / "file").write_text("")
    result = chaos(
        "--scenario", "requests", "--runs", "1", "-j", "1", "--no-shrink", "--failures", f"{tmp_path}/file"
    )
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr


def test_a_script_of_another_format(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    write_script(new_script("requests", 0), path)
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    result = chaos("--script", str(path))
    assert result.exit_code == 2
    assert "format 2: this version reads format 1" in result.stderr


@pytest.mark.parametrize(
    ("found", "changed", "message"),
    [
        ('"request": "bind"', '"request": "bnd"', "there is no request 'bnd'; there are bind, status, "),
        ('"scheduler": 0', '"scheduler": 9', "there is no scheduler 9: the first one is 0"),
    ],
)
def test_a_script_with_faults_that_hit_nothing(
    tmp_path: Path, found: str, changed: str, message: str
) -> None:
    path = tmp_path / "script.json"
    write_script(new_script("requests", 0), path)
    path.write_text(path.read_text().replace(found, changed, 1))
    result = chaos("--script", str(path))
    assert result.exit_code == 2
    assert message in result.stderr
