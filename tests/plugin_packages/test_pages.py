"""README and the pages about plugins and decisions say what happens: they are executed as written."""

from __future__ import annotations

from pathlib import Path

from tests.documents.player import ROOT, Play, section


def test_the_readme(tmp_path: Path) -> None:
    played = Play.in_a_clone(tmp_path)
    played.play((ROOT / "README.md").read_text())
    assert "make up" in played.commands
    assert "moorage up --plugin cheapest.py --watch" in played.commands


def test_the_page_about_plugins(tmp_path: Path) -> None:
    played = Play.in_a_clone(tmp_path)
    played.play((ROOT / "docs/how-to/plugins.md").read_text())
    assert "python examples/first_decision.py" in played.commands
    assert "moorage plugin new quiet-hours" in played.commands


def test_decisions_in_python(tmp_path: Path) -> None:
    text = section((ROOT / "docs/how-to/explaining.md").read_text(), "In Python")
    assert "moorage.decide(" in text
    Play.in_a_clone(tmp_path).play(text)
