"""Two distributions of one version, each with its own package and nothing else."""

from __future__ import annotations

import re
import tomllib
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import trove_classifiers
from markdown_it import MarkdownIt

from moorage import __version__
from tests.packages.conftest import FOLDERS
from tests.plugin_packages.environment import ROOT
from tools.build_hooks import MANUAL

SYSTEMS = {"Operating System :: MacOS", "Operating System :: POSIX :: Linux"}
TARGET = re.compile(r'(?:href|src)="([^"]*)"')
MANUAL_PAGES = f"moorage-{__version__}.data/data/share/man/man1/"


def metadata(wheel: Path, name: str) -> Message:
    with ZipFile(wheel) as archive:
        return Parser().parsestr(archive.read(f"{name}-{__version__}.dist-info/METADATA").decode())


@pytest.mark.parametrize("name", FOLDERS)
def test_a_wheel_holds_its_package_and_no_other(name: str, wheels: dict[str, Path]) -> None:
    information = f"{name}-{__version__}.dist-info"
    with ZipFile(wheels[name]) as archive:
        names = set(archive.namelist())
        assert archive.read(f"{information}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    if name == "moorage" and (ROOT / MANUAL).exists():  # `make man` has been run.
        names = {each for each in names if not each.startswith(MANUAL_PAGES)}
    assert {each.partition("/")[0] for each in names} == {name, information}
    source = FOLDERS[name] / "src"
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    packed = {each for each in names if each.startswith(f"{name}/")}
    assert packed == {each for each in files if "__pycache__" not in each}
    assert f"{name}/py.typed" in packed


def test_versions_are_in_step(wheels: dict[str, Path]) -> None:
    scheduler, cluster = (metadata(wheels[name], name) for name in FOLDERS)
    assert scheduler["Version"] == cluster["Version"] == __version__
    assert f"moorage=={__version__}" in cluster.get_all("Requires-Dist", [])
    extra = f"moorage-cluster=={__version__}; extra == 'cluster'"
    assert extra in scheduler.get_all("Requires-Dist", [])


@pytest.mark.parametrize("name", FOLDERS)
def test_an_index_shows_who_made_what_for_whom(name: str, wheels: dict[str, Path]) -> None:
    told = metadata(wheels[name], name)
    urls = dict(each.split(", ") for each in told.get_all("Project-URL", []))
    assert urls.keys() == {"Homepage", "Documentation", "Source", "Changelog", "Issues"}
    assert all(url.startswith(urls["Homepage"]) for url in urls.values())
    assert told["Author"] == "The moorage authors"
    assert told["License-Expression"] == "Apache-2.0"
    assert told["Keywords"]
    classified = told.get_all("Classifier", [])
    assert SYSTEMS | {"Typing :: Typed"} <= {*classified}
    assert [each for each in classified if each not in trove_classifiers.classifiers] == []


@pytest.mark.parametrize("name", FOLDERS)
def test_links_and_pictures_of_the_long_description_work_on_an_index(
    name: str, wheels: dict[str, Path]
) -> None:
    told = metadata(wheels[name], name)
    assert told["Description-Content-Type"] == "text/markdown"
    page = MarkdownIt().enable("table").render(str(told.get_payload()))
    targets = TARGET.findall(page)
    assert bool(targets) is (name == "moorage")
    assert [each for each in targets if not each.startswith(("https://", "#"))] == []


def test_links_lead_to_the_version_that_is_described(wheels: dict[str, Path]) -> None:
    told = str(metadata(wheels["moorage"], "moorage").get_payload())
    source = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    assert f"({source}/blob/v{__version__}/docs/index.md)" in told
    assert re.search(rf"!\[[^]]+\]\({source}/raw/v{__version__}/docs/images/[\w-]+\.png\)", told)


def test_the_cluster_needs_nothing_that_the_scheduler_does_not_need() -> None:
    """So that the lock of what runs is that of both."""
    scheduler, cluster = (_dependencies(folder) for folder in FOLDERS.values())
    assert cluster - {f"moorage=={__version__}"} <= scheduler


def _dependencies(folder: Path) -> set[str]:
    project: Any = tomllib.loads((folder / "pyproject.toml").read_text())
    return set(project["project"]["dependencies"])
