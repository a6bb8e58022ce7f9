"""`moorage chaos store`: what it prints and exits with."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner, Result

from moorage.cli.main import app
from moorage_cluster.chaos.durability import campaign
from moorage_cluster.chaos.durability.campaign import CHECKS, Scale
from moorage_cluster.chaos.durability.writes import Expected
from moorage_cluster.cli import chaos_store


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(chaos_store, "SCALE", Scale(5, 0, 2, damaged=20, killed=1, served=1))
    campaign._recording.cache_clear()
    yield
    campaign._recording.cache_clear()


def store(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["chaos", "store", *arguments])


def test_the_checks_are_listed() -> None:
    result = store("--list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["CHECK", *CHECKS]


def test_a_campaign_that_holds() -> None:
    result = store("--check", "kills", "--check", "damage", "--rounds", "2", "-j", "1")
    assert result.exit_code == 0, result.output
    header, kills, damage = result.stdout.splitlines()
    assert header.split() == ["CHECK", "CASES", "FAILED", "OUTCOMES"]
    assert kills.split()[0] == "kills"
    assert damage.split()[:3] == ["damage", "40", "0"]


def test_a_report_as_json() -> None:
    result = store("--check", "damage", "-j", "1", "-o", "json")
    (report,) = json.loads(result.stdout)
    assert report["check"] == "damage"
    assert report["cases"] == sum(report["outcomes"].values()) == 20
    assert report["problems"] == []


def test_a_failure_has_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Expected, "difference", lambda self, revision, found: "an object is gone")
    result = store("--check", "power", "--seed", "7", "-j", "1")
    assert result.exit_code == 1
    first = result.stderr.splitlines()[0]
    assert first.startswith("moorage chaos store: power failed after operation 1 with ")
    assert first.endswith(": an object is gone (moorage chaos store --check power --seed 7)")


def test_a_check_that_there_is_not() -> None:
    result = store("--check", "fire")
    assert result.exit_code == 2
    assert result.stderr.startswith(
        "moorage chaos store: --check: there is no 'fire'; there are kills, power, "
    )
