"""README's section about plugins says what happens: it is executed as written."""

from __future__ import annotations

from pathlib import Path

from tests.plugin_packages.page import ROOT, Play, section

HEADING = "A plugin in ten lines"


def test_the_section_about_plugins(tmp_path: Path) -> None:
    text = section((ROOT / "README.md").read_text(), HEADING)
    played = Play(tmp_path)
    played.play(text)
    assert ".venv/bin/python examples/first_decision.py" in played.commands
    assert "moorage plugin new quiet-hours" in played.commands
