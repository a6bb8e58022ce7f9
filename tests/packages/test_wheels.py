"""Two distributions of one version, each with its own package and nothing else."""

from __future__ import annotations

import tomllib
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from moorage import __version__
from tests.plugin_packages.environment import CLUSTER, ROOT, build_wheel

FOLDERS = {"moorage": ROOT, "moorage_cluster": CLUSTER}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels, by the name of their package."""
    into = tmp_path_factory.mktemp("wheels")
    return {name: build_wheel(into, folder) for name, folder in FOLDERS.items()}


def metadata(wheel: Path, name: str) -> Message:
    with ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read(f"{name}-{__version__}.dist-info/METADATA").decode())


@pytest.mark.parametrize("name", FOLDERS)
def test_a_wheel_holds_its_package_and_no_other(name: str, wheels: dict[str, Path]) -> None:
    information = f"{name}-{__version__}.dist-info"
    with ZipFile(wheels[name]) as archive:
        names = set(archive.namelist())
        assert archive.read(f"{information}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    assert {each.partition("/")[0] for each in names} == {name, information}
    source = FOLDERS[name] / "src"
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    packed = {each for each in names if each.startswith(f"{name}/")}
    assert packed == {each for each in files if "__pycache__" not in each}


def test_versions_are_in_step(wheels: dict[str, Path]) -> None:
    scheduler, cluster = (metadata(wheels[name], name) for name in FOLDERS)
    assert scheduler["Version"] == cluster["Version"] == __version__
    assert f"moorage=={__version__}" in cluster.get_all("Requires-Dist", [])
    extra = f"moorage-cluster=={__version__}; extra == 'cluster'"
    assert extra in scheduler.get_all("Requires-Dist", [])


def test_the_cluster_needs_nothing_that_the_scheduler_does_not_need() -> None:
    """So that the lock of what runs is that of both."""
    scheduler, cluster = (_dependencies(folder) for folder in FOLDERS.values())
    assert cluster - {f"moorage=={__version__}"} <= scheduler


def _dependencies(folder: Path) -> set[str]:
    project: Any = tomllib.loads((folder / "pyproject.toml").read_text())
    return set(project["project"]["dependencies"])
