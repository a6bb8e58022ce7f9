"""Workflows call what there is, end in time, and may do no more than they have to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
NIGHT = ROOT / ".github/workflows/nightly.yml"
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
VARIABLES = set(re.findall(r"\$\((?:if \$\()?([A-Z_]+)\)", MAKEFILE)) | {"PYTHON", "SKIP_LINT"}
CALL = re.compile(r"\bmake ((?:[A-Za-z_-]+(?:=(?:\"[^\"]*\"|[^\s|]*))? ?)+)")
OPTIONS = re.compile(r"\b[A-Z_]+=\"([^\"]*)\"")

MAX_MINUTES = 360
"""Of a job, as GitHub ends it."""
NIGHTLY = {"test-random", "fuzz", "chaos", "chaos-store", "soak"}


def load(path: Path) -> dict[Any, Any]:
    content: dict[Any, Any] = yaml.safe_load(path.read_text())
    return content


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = load(path)["jobs"]
    return found


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(path).values() for step in job.get("steps", ())]


def commands(path: Path) -> list[str]:
    return [step["run"] for step in steps(path) if "run" in step]


def words(path: Path) -> list[str]:
    """The words after `make` in all commands, without what is in quotation marks."""
    calls = [found for command in commands(path) for found in CALL.findall(command)]
    return [word for call in calls for word in re.sub(r'"[^"]*"', "", call).split()]


def name_of(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=name_of)
def test_every_target_and_variable_of_make_exists(workflow: Path) -> None:
    targets = {word for word in words(workflow) if "=" not in word}
    variables = {word.partition("=")[0] for word in words(workflow) if "=" in word}

    assert targets <= TARGETS
    assert variables <= VARIABLES


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=name_of)
def test_every_job_ends_in_time_and_makes_way_for_the_next(workflow: Path) -> None:
    assert all(0 < job["timeout-minutes"] <= MAX_MINUTES for job in jobs(workflow).values())
    assert load(workflow)["concurrency"]["group"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=name_of)
def test_only_jobs_that_say_so_may_write(workflow: Path) -> None:
    assert load(workflow)["permissions"] in ({}, {"contents": "read"})
    assert all(isinstance(job.get("permissions", {}), dict) for job in jobs(workflow).values())


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=name_of)
def test_nothing_from_outside_is_part_of_a_command(workflow: Path) -> None:
    triggers = load(workflow)[True]  # YAML reads `on` as true.

    assert "pull_request_target" not in triggers
    assert not any("${{" in command and "matrix." not in command for command in commands(workflow))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=name_of)
def test_actions_are_of_a_version(workflow: Path) -> None:
    used = [
        step["uses"] for job in jobs(workflow).values() for step in job.get("steps", ()) if "uses" in step
    ]

    assert [action for action in used if not re.fullmatch(r"[\w./-]+@(v\d[\w.]*|[0-9a-f]{40})", action)] == []


def test_jobs_of_ci_and_of_the_night_only_read() -> None:
    writing = {
        (path.name, name): job["permissions"]
        for path in WORKFLOWS
        if path.name in ("ci.yml", "nightly.yml", "dependencies.yml")
        for name, job in jobs(path).items()
        if "permissions" in job
    }

    assert writing == {
        ("nightly.yml", "report"): {"issues": "write"},
        ("dependencies.yml", "locks"): {"contents": "write", "pull-requests": "write"},
    }


def test_every_campaign_runs_at_night_with_other_seeds() -> None:
    conditions = [step["if"] for step in steps(NIGHT) if "matrix.campaign" in step.get("if", "")]
    campaigns = [re.findall(r"'(\w+)'", each)[0] for each in conditions]
    options = [found for command in commands(NIGHT) for found in OPTIONS.findall(command)]

    assert {word for word in words(NIGHT) if "=" not in word} == NIGHTLY
    assert campaigns == jobs(NIGHT)["campaign"]["strategy"]["matrix"]["campaign"]
    assert sum("SEED" in each for each in options) == len(NIGHTLY) - 1  # Hypothesis draws its own.
    assert "schedule" in load(NIGHT)[True]


def test_what_fails_at_night_is_kept() -> None:
    kept = [
        step["with"]["path"].split() for step in steps(NIGHT) if "upload-artifact" in step.get("uses", "")
    ]

    assert kept == [["build/nightly", ".hypothesis/examples"]]
    assert load(NIGHT)["defaults"]["run"]["shell"] == "bash"  # With pipefail: output goes through tee.


def test_dependabot_follows_what_has_no_lock_of_ours() -> None:
    updates = load(ROOT / ".github/dependabot.yml")["updates"]

    assert [each["package-ecosystem"] for each in updates] == ["github-actions", "docker"]
    assert (ROOT / "Dockerfile").exists()
