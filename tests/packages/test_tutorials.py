"""The tutorials say what happens: each is played in an empty folder, with the wheels and kubectl only."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.documents.player import ROOT, Play, blocks
from tests.plugin_packages.environment import CleanEnvironment

TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
KUBECTL = Path(sys.executable).parent / "kubectl"


@pytest.fixture(scope="module")
def programs(installed: CleanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Where the commands of a reader are who has installed the wheels and kubectl."""
    folder = tmp_path_factory.mktemp("kubectl")
    (folder / "kubectl").symlink_to(KUBECTL)
    return [installed.bin, folder]


def test_there_are_tutorials() -> None:
    assert [each.stem for each in TUTORIALS] == [
        "first-cluster",
        "first-plugin",
        "first-what-if",
        "gangs",
        "shadow-to-production",
    ]


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial(tutorial: Path, programs: list[Path], tmp_path: Path) -> None:
    played = Play(tmp_path, programs)
    played.play(tutorial.read_text())

    assert len(played.commands) > len(played.not_run)
    assert all(each.startswith("pip install ") for each in played.not_run)


def test_the_first_tutorial_takes_less_than_five_minutes_of_typing() -> None:
    """At 40 words a minute, a word being five characters."""
    text = (ROOT / "docs/tutorials/first-cluster.md").read_text()
    typed = "".join(block.text for block in blocks(text) if block.language == "console")

    assert typed.count("$ ") <= 13
    assert len(typed) / 5 / 40 < 5
