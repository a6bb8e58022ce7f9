"""The tutorials say what happens: each is played in an empty folder, with the installed packages only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.documents.player import ROOT, Play, blocks

TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))


def play_tutorial(tutorial: Path, folder: Path, programs: Sequence[Path] = ()) -> Play:
    """Play a tutorial in an empty folder.

    programs: where its commands are; by default the tests' own environment.
    """
    played = Play(folder, programs)
    played.play(tutorial.read_text())
    return played


def test_there_are_tutorials() -> None:
    assert [each.stem for each in TUTORIALS] == [
        "first-cluster",
        "first-plugin",
        "first-what-if",
        "gangs",
        "shadow-to-production",
    ]


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial(tutorial: Path, tmp_path: Path) -> None:
    played = play_tutorial(tutorial, tmp_path)

    assert len(played.commands) > len(played.not_run)
    assert all(each.startswith("pip install ") for each in played.not_run)


def test_the_first_tutorial_takes_less_than_five_minutes_of_typing() -> None:
    """At 40 words a minute, a word being five characters."""
    text = (ROOT / "docs/tutorials/first-cluster.md").read_text()
    typed = "".join(block.text for block in blocks(text) if block.language == "console")

    assert typed.count("$ ") <= 13
    assert len(typed) / 5 / 40 < 5
