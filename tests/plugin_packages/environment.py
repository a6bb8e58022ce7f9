"""A Python environment with nothing in it but a wheel of moorage and what that says it needs; no network.

The packages that are needed come from the environment of the tests, by links: as far as Python and pip can
see, they are installed. Whatever moorage needs without saying so is not there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent.parent
CLUSTER = ROOT / "cluster"
BUILDS_WITHIN_SECONDS = 120


class CleanEnvironment:
    """An environment of its own for pip to install into."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.bin = folder / "bin"
        self.python = self.bin / "python"
        (self.site_packages,) = (folder / "lib").glob("python*/site-packages")

    def link(self, *names: str) -> None:
        """Make installed packages, and all that they need, be there as well."""
        for name in _closure(names):
            for part in sorted({file.parts[0] for file in distribution(name).files or ()}):
                source = Path(str(distribution(name).locate_file(part)))
                target = self.site_packages / part
                if part not in ("..", "__pycache__") and not target.exists():
                    target.symlink_to(source)

    def install(self, *words: str) -> None:
        """Have pip install something that is at hand, or whose needs are."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--no-input"]
        done = run([*pip, "install", "--no-index", "--no-build-isolation", "--quiet", *words])
        assert done.returncode == 0, done.stderr

    @contextmanager
    def used(self) -> Iterator[None]:
        """Processes of moorage that tests start in this context run in the environment."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "executable", str(self.python))
            yield

    def run(self, program: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run one of its programs."""
        return run([str(self.bin / program), *words], cwd)


def environment_with(folder: Path, wheels: Path, *needs: str) -> CleanEnvironment:
    """An environment in a folder, with wheels of moorage and its extra from another, and further packages."""
    environment = CleanEnvironment(folder)
    environment.link(*needs_of_moorage(), *needs)
    environment.install("--find-links", str(wheels), "moorage[cluster]")
    return environment


def run(command: list[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program that may know nothing of where the tests run."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
    return subprocess.run(
        command,
        cwd=cwd,
        env=kept | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=BUILDS_WITHIN_SECONDS,
        check=False,
    )


def build_wheel(folder: Path, source: Path = ROOT) -> Path:
    """A wheel of moorage, or of the package in another folder, from this very source."""
    words = [
        "wheel",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--quiet",
        "--wheel-dir",
        str(folder),
    ]
    before = set(folder.glob("*.whl"))
    done = run([sys.executable, "-m", "pip", *words, str(source)])
    assert done.returncode == 0, done.stderr
    (wheel,) = set(folder.glob("*.whl")) - before
    return wheel


def needs_of_moorage() -> list[str]:
    """The packages that moorage says it needs: what is installed of it may be older than its source."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return _names(project["dependencies"])


def _names(requirements: Iterable[str]) -> list[str]:
    """The packages that are required here, without those of extras."""
    wanted = map(Requirement, requirements)
    return [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]


def _closure(names: Iterable[str]) -> list[str]:
    """Packages and all that they need, each once; what is not installed is not needed here."""
    found: dict[str, None] = {}
    left = list(names)
    while left:
        name = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if name in found:
            continue
        try:
            left += _names(distribution(name).requires or ())
        except PackageNotFoundError:
            continue
        found[name] = None
    return list(found)
