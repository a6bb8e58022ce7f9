"""The output in docs/how-to/explain.md and README.md is what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.main import app

ROOT = Path(__file__).parent.parent.parent
SHOWN = re.compile(
    r"```console\n\$ moorage (explain [^\n]*--from examples[^\n]*)\n```\n```text\n(.*?)\n```", re.DOTALL
)


@pytest.mark.parametrize("document", ["docs/how-to/explain.md", "README.md"])
def test_shown_output_is_real(document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    shown = SHOWN.findall((ROOT / document).read_text())
    assert shown
    for command, expected in shown:
        result = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "100"})
        printed = "\n".join(line.rstrip() for line in result.stdout.splitlines())
        assert expected in printed
