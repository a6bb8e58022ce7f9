"""A release is built by jobs each of which may do what it has to and nothing else, and then published."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.plugin_packages.environment import ROOT
from tests.test_project_files import pythons

TEXT = (ROOT / ".github/workflows/release.yml").read_text()
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, Any] = WORKFLOW["jobs"]
PERMISSIONS = {
    "build": {"actions": "read", "contents": "read"},
    "zipapp": {"contents": "read"},
    "kubernetes": {"contents": "read"},
    "attest": {"attestations": "write", "id-token": "write"},
    "image": {"attestations": "write", "contents": "read", "id-token": "write", "packages": "write"},
    "pypi": {"id-token": "write"},
    "release": {"contents": "write"},
}
STEPS = [(name, step) for name, job in JOBS.items() for step in job["steps"]]
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$")


def before(name: str) -> set[str]:
    """The jobs that have to have ended well before one begins."""
    needs = JOBS[name].get("needs", [])
    direct = {needs} if isinstance(needs, str) else set(needs)
    return direct.union(*map(before, direct))


def test_it_runs_for_tags_of_versions_only() -> None:
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as true.


def test_each_job_has_the_permissions_that_it_needs() -> None:
    assert WORKFLOW["permissions"] == {}
    assert {name: job["permissions"] for name, job in JOBS.items()} == PERMISSIONS


def test_actions_are_named_by_commit() -> None:
    used = [line.strip().removeprefix("- ") for line in TEXT.splitlines() if "uses: " in line]
    assert len(used) > 10
    assert [line for line in used if not PINNED.fullmatch(line)] == []


def test_what_is_built_is_what_anybody_builds() -> None:
    made = [word for _, step in STEPS for word in re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))]
    assert made == ["dist", "zipapp", "krew", "chart"]


def test_a_checkout_leaves_no_credentials() -> None:
    checkouts = [step for _, step in STEPS if "checkout@" in step.get("uses", "")]
    assert len(checkouts) == 4
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_no_secret_is_kept() -> None:
    assert "secrets." not in TEXT
    assert JOBS["pypi"]["environment"] == "pypi"


@pytest.mark.parametrize("name", ["pypi", "release"])
def test_only_what_is_attested_is_published(name: str) -> None:
    assert {"build", "zipapp", "kubernetes", "attest", "image"} <= before(name)


def test_there_is_one_file_for_each_python_and_system() -> None:
    matrix = JOBS["zipapp"]["strategy"]["matrix"]
    assert matrix["python-version"] == pythons()
    assert {system.partition("-")[0] for system in matrix["system"]} == {"ubuntu", "macos"}


def test_the_image_has_the_time_of_its_source() -> None:
    (built,) = (step["with"] for _, step in STEPS if "build-push-action@" in step.get("uses", ""))
    assert built["build-args"].startswith("SOURCE_DATE_EPOCH=")
    assert "rewrite-timestamp=true" in built["outputs"]
    assert re.search(r"^ARG SOURCE_DATE_EPOCH$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
