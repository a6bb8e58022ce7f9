"""A source distribution has what a wheel is built from, and building again gives the same bytes."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from moorage import __version__
from tests.packages.conftest import FOLDERS
from tests.plugin_packages.environment import run
from tools.build_hooks import MANUAL
from tools.manual import main as write_manual

TOP = {
    "moorage": {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "src", "tools"},
    "moorage_cluster": {"LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "src"},
}


def build(target: str, source: Path, into: Path) -> Path:
    """What the build backend makes of a folder."""
    words = ["-m", "hatchling", "build", "--target", target, "--directory", str(into)]
    done = run([sys.executable, *words], source)
    assert done.returncode == 0, done.stderr
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module", params=FOLDERS)
def name(request: pytest.FixtureRequest) -> str:
    """The name of a package."""
    return str(request.param)


@pytest.fixture(scope="module")
def archive(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its source distribution."""
    return build("sdist", FOLDERS[name], tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(name: str, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that it unpacks to."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder / f"{name}-{__version__}"


def test_it_holds_the_source_and_no_more(name: str, unpacked: Path) -> None:
    there = {path.name for path in unpacked.iterdir() if path.name != Path(MANUAL).parts[0]}
    assert there - {".gitignore"} == TOP[name]


def test_a_wheel_of_it_is_that_of_the_tree(
    name: str, unpacked: Path, wheels: dict[str, Path], tmp_path: Path
) -> None:
    assert build("wheel", unpacked, tmp_path).read_bytes() == wheels[name].read_bytes()


def test_building_again_gives_the_same_bytes(name: str, archive: Path, tmp_path: Path) -> None:
    assert build("sdist", FOLDERS[name], tmp_path).read_bytes() == archive.read_bytes()


@pytest.mark.parametrize("name", ["moorage"], indirect=True)
def test_manual_pages_are_where_man_looks(
    unpacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["manual", str(unpacked / MANUAL)])
    write_manual()
    with ZipFile(build("wheel", unpacked, tmp_path)) as wheel:
        folder = f"moorage-{__version__}.data/data/share/man/man1"
        packed = {name for name in wheel.namelist() if name.startswith(folder)}
    assert {f"{folder}/{name}.1" for name in ("moorage", "moorage-up", "moorage-plan-fit")} <= packed
