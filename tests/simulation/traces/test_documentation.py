"""The output in docs/how-to/traces.md is what the commands print with the files that it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.main import app
from moorage.simulation.placement_files import COLUMNS

DOCS = Path(__file__).parents[3] / "docs"
FILES = re.compile(r"this as `([^`]+)`:\n\n```\w+\n(.*?)```", re.DOTALL)
SHOWN = re.compile(r"```console\n\$ moorage ((?!trace record)[^\n]*)\n```\n```text\n(.*?)```", re.DOTALL)


def test_shown_output_is_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "how-to/traces.md").read_text()
    for name, content in FILES.findall(page):
        Path(name).write_text(content)
    shown = SHOWN.findall(page)
    assert len(shown) == 2
    for command, expected in shown:
        result = CliRunner().invoke(app, shlex.split(command))
        assert result.stdout == expected, result.output


def test_every_column_of_placements_is_described() -> None:
    described = re.findall(r"^\| (`[^|]*) \|", (DOCS / "how-to/simulating.md").read_text(), re.MULTILINE)
    names = {name for cell in described for name in re.findall(r"`(\w+)`", cell)}
    assert {column.name for column in COLUMNS} <= names
