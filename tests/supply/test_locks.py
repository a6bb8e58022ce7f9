"""The lock files fit pyproject.toml, and nothing is installed but by them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement

from tools.locks import Locked, LockError, canonical, read_lock

ROOT = Path(__file__).parent.parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
OWN = "moorage-cluster"  # installed from its folder
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
RUNTIME: list[str] = PROJECT["project"]["dependencies"]
BUILD: list[str] = PROJECT["build-system"]["requires"]
WANTED: dict[str, list[str]] = {
    "runtime": RUNTIME,
    "build": BUILD,
    "up": [*RUNTIME, *BUILD, *EXTRAS["kubectl"]],
    "development": [
        *RUNTIME,
        *BUILD,
        *(each for extra in EXTRAS.values() for each in extra if not each.startswith(OWN)),
    ],
    "docs": [*RUNTIME, *BUILD, *EXTRAS["kubectl"], *EXTRAS["docs"]],
    "supply": PROJECT["dependency-groups"]["supply"],
}
PYTHONS = ("3.11.0", "3.12.0", "3.13.0", "3.14.0")
PLATFORMS = (("linux", "Linux"), ("darwin", "Darwin"))


def lock(name: str) -> list[Locked]:
    return read_lock(ROOT / "requirements" / f"{name}.txt")


def environments() -> Iterator[dict[str, str]]:
    for python in PYTHONS:
        for platform, system in PLATFORMS:
            here = {"python_full_version": python, "python_version": python.rpartition(".")[0]}
            where = {"sys_platform": platform, "platform_system": system}
            yield {**{key: str(value) for key, value in default_environment().items()}, **here, **where}


def versions(entries: list[Locked], environment: dict[str, str]) -> dict[str, str]:
    """What of a lock is installed somewhere; never two versions of a package."""
    found = [each for each in entries if not each.marker or Marker(each.marker).evaluate(environment)]
    assert len({each.name for each in found}) == len(found)
    return {each.name: each.version for each in found}


def anywhere(entries: list[Locked]) -> set[Locked]:
    """The files of a lock, wherever they are installed."""
    return {replace(each, marker="") for each in entries}


def is_wanted(requirement: str, environment: dict[str, str]) -> bool:
    marker = Requirement(requirement).marker
    return marker is None or marker.evaluate(environment)


def is_satisfied(requirement: str, there: dict[str, str]) -> bool:
    wanted = Requirement(requirement)
    version = there.get(canonical(wanted.name))
    return version is not None and wanted.specifier.contains(version, prereleases=True)


@pytest.mark.parametrize("name", WANTED)
def test_a_lock_has_what_pyproject_asks_for_on_every_python_and_platform(name: str) -> None:
    entries = lock(name)
    for environment in environments():
        there = versions(entries, environment)
        wanted = [each for each in WANTED[name] if is_wanted(each, environment)]
        assert [each for each in wanted if not is_satisfied(each, there)] == []


@pytest.mark.parametrize("name", ["runtime", "build", "up", "development", "docs"])
def test_a_lock_has_what_its_packages_ask_for(name: str) -> None:
    there = versions(lock(name), {key: str(value) for key, value in default_environment().items()})
    for package in there:
        for each in distribution(package).requires or ():
            marker = Requirement(each).marker
            if marker is None or marker.evaluate({"extra": ""}):
                assert is_satisfied(each, there), f"{package} needs {each}"


@pytest.mark.parametrize("name", ["runtime", "build", "up", "docs"])
def test_what_runs_is_what_was_tested(name: str) -> None:
    entries, tested = lock(name), lock("development")
    assert anywhere(entries) <= anywhere(tested)
    for environment in environments():
        assert versions(entries, environment).items() <= versions(tested, environment).items()


def test_there_is_a_lock_for_each_set_and_none_names_an_index() -> None:
    files = list((ROOT / "requirements").iterdir())
    assert {path.name for path in files} == {f"{name}.txt" for name in WANTED}
    for path in files:
        assert "://" not in path.read_text()
        assert "-index" not in path.read_text()


@pytest.mark.parametrize(
    "line",
    [
        "numpy",
        "numpy==2.4.6",
        "numpy>=2 --hash=sha256:" + "0" * 64,
        "numpy==2.4.6 --hash=md5:" + "0" * 32,
        "numpy==2.4.6 --hash=sha256:" + "0" * 63,
        "numpy @ file:///tmp/numpy.whl",
        "--extra-index-url file:///tmp",
    ],
)
def test_a_line_that_anything_could_satisfy_is_no_line_of_a_lock(line: str, tmp_path: Path) -> None:
    path = tmp_path / "lock.txt"
    path.write_text(f"{line}\n")
    with pytest.raises(LockError):
        read_lock(path)


def test_make_installs_nothing_without_hashes_but_the_project_itself() -> None:
    text = (ROOT / "Makefile").read_text()
    assert re.search(r"^LOCKED := -m pip install .*--require-hashes --requirement$", text, re.MULTILINE)
    installs = [line for line in text.splitlines() if line.startswith("\t") and "pip install" in line]
    assert [line.split("pip install ")[1] for line in installs] == [
        "--quiet --no-deps --no-build-isolation --editable . --editable cluster"
    ]
    locks = set(re.findall(r"\$\(LOCKED\) requirements/(\w+)\.txt", text))
    assert locks == {"up", "development", "docs", "supply"}
