"""Every plugin has a table of its rules beside it, and what the folders' docstrings point to exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import moorage.plugins
from moorage.plugins import DEFAULT_PLUGINS, GROUP_PLUGINS, OPTIONAL_PLUGINS

SOURCES = Path(moorage.plugins.__file__).parent
TESTS = Path(__file__).parent
ROOT = TESTS.parents[1]
PLUGINS = [*DEFAULT_PLUGINS, *GROUP_PLUGINS, *OPTIONAL_PLUGINS]
FOLDERS = sorted(init.parent for init in SOURCES.glob("*/**/__init__.py"))


def _test_file(module: str) -> Path:
    """`a.b` is tested in a/test_b.py, a folder's `a.plugin` in a/test_a.py."""
    *folders, name = module.removeprefix("moorage.plugins.").split(".")
    return TESTS.joinpath(*folders, f"test_{folders[-1] if name == 'plugin' else name}.py")


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
def test_every_plugin_has_a_table_of_its_rules(plugin: Any) -> None:
    path = _test_file(plugin.__module__)
    assert path.is_file(), f"{plugin.name}: write its rules as a table in {path.relative_to(ROOT)}"
    text = path.read_text()
    assert "pytest.mark.parametrize" in text
    assert re.search(r"\bids?=", text), f"{path.relative_to(ROOT)}: give the rules names (ids=)"


@pytest.mark.parametrize("module", sorted(SOURCES.glob("[!_]*.py")), ids=lambda module: module.stem)
def test_every_file_has_tests(module: Path) -> None:
    assert (TESTS / f"test_{module.name}").is_file()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(SOURCES)))
def test_every_folder_has_tests(folder: Path) -> None:
    assert list((TESTS / folder.relative_to(SOURCES)).glob("test_*.py"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(SOURCES)))
def test_what_a_folder_points_to_exists(folder: Path) -> None:
    text = (folder / "__init__.py").read_text()
    for path in re.findall(r"tests/[\w/]+\.py", text):
        assert (ROOT / path).is_file(), path
    for name in re.findall(r"[\w*-]+-\*", text):
        assert list((ROOT / "tests" / "recordings").glob(f"{name}.json.gz")), name
    source = "\n".join(module.read_text() for module in SOURCES.glob("**/*.py"))
    for name in re.findall(r"\b(?:[A-Z][a-z]+){2,}\b", text):
        assert re.search(rf"class {name}\b", source) or name in _KUBERNETES_WORDS, name


_KUBERNETES_WORDS = {
    "DoNotSchedule",
    "ScheduleAnyway",
    "LeastAllocated",
    "MostAllocated",
    "RequestedToCapacityRatio",
}
