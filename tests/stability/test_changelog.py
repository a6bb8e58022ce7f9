"""CHANGELOG.md has the form of Keep a Changelog, and one version is named everywhere."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

import moorage
from tools.interface.__main__ import CHANGELOG
from tools.interface.changelog import GROUPS, Release, releases

ROOT = Path(__file__).parents[2]
RELEASES = releases(CHANGELOG.read_text())
VERSIONS = [Version(release.name) for release in RELEASES[1:]]
PROJECTS = [ROOT / "pyproject.toml", ROOT / "cluster" / "pyproject.toml"]
FOLDERS = [ROOT / "docs", ROOT / "deploy"]
FILES = [path for folder in FOLDERS for suffix in ("md", "yaml") for path in folder.rglob(f"*.{suffix}")]
NAMED = re.compile(r"(?:\bmoorage[:-]|\b(?:newTag|appVersion): )(\d+\.\d+\.\d+)\b")
"""An image, a package or a chart with its version."""


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def project(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = tomllib.loads(path.read_text())["project"]
    return content


def test_the_first_section_is_for_what_is_not_released() -> None:
    assert RELEASES[0].name == "Unreleased"
    assert RELEASES[0].date == ""


def test_versions_go_down_and_so_do_dates() -> None:
    dates = [date.fromisoformat(release.date) for release in RELEASES[1:]]

    assert sorted(VERSIONS, reverse=True) == VERSIONS
    assert len({*VERSIONS}) == len(VERSIONS)
    assert sorted(dates, reverse=True) == dates


@pytest.mark.parametrize("release", RELEASES[1:], ids=lambda release: release.name)
def test_a_version_has_groups_in_their_order_and_entries_in_each(release: Release) -> None:
    assert list(release.groups) == [group for group in GROUPS if group in release.groups]
    assert release.groups
    assert all(release.groups.values())


def test_the_newest_version_is_that_of_the_package() -> None:
    assert VERSIONS[0] == Version(moorage.__version__)


@pytest.mark.parametrize("path", PROJECTS, ids=name_of)
def test_both_packages_have_that_version_and_ask_for_each_other(path: Path) -> None:
    content = project(path)
    needed = [
        *content["dependencies"],
        *(each for some in content.get("optional-dependencies", {}).values() for each in some),
    ]
    pinned = [
        each.partition("==")[2] for each in needed if each.startswith(("moorage==", "moorage-cluster=="))
    ]

    assert pinned == [moorage.__version__]
    assert "version" in content.get("dynamic", ()) or content["version"] == moorage.__version__


def test_images_packages_and_charts_are_named_with_that_version() -> None:
    texts = [path.read_text() for path in [ROOT / "README.md", *FILES]]
    named = {Version(found) for text in texts for found in NAMED.findall(text)}

    assert min(named) == Version(moorage.__version__)  # Guides upgrade to the one after it.
    assert len(named) <= 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("## 1.0.0\n", "not the heading of a version: ## 1.0.0"),
        ("## [1.0.0] - today\n", "not the heading of a version"),
        ("## [1.0.0] - 2026-11-20\n### News\n", "News: none of Added, Changed"),
    ],
)
def test_another_heading_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        releases(text)


def test_an_entry_may_have_several_lines() -> None:
    text = "## [1.0.0] - 2026-11-20\n\n### Added\n\n- One\n  more.\n- Two.\n\n### Fixed\n\n- Three.\n"

    assert releases(text) == [
        Release("1.0.0", "2026-11-20", {"Added": ["One more.", "Two."], "Fixed": ["Three."]})
    ]
