"""Every example runs, and prints what its .out file says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.main import app

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example(example: Path) -> None:
    result = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == example.with_suffix(".out").read_text()


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize(
    "arguments",
    [
        ["decide", "examples/cluster.yaml", "--pod", "examples/pod.yaml"],
        ["replay", *sorted(str(path) for path in (ROOT / "tests" / "recordings").glob("*.json.gz"))],
    ],
    ids=["decide", "replay"],
)
def test_the_readme_shows_what_commands_really_print(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    printed = "\n".join(line.rstrip() for line in result.output.splitlines())
    assert printed in (ROOT / "README.md").read_text()


def test_the_first_example_is_shown_in_the_readme_with_its_output() -> None:
    readme = (ROOT / "README.md").read_text()
    assert (ROOT / "examples" / "first_decision.out").read_text() in readme
