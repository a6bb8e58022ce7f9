"""Every example runs, and prints what its .out file says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example(example: Path) -> None:
    result = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == example.with_suffix(".out").read_text()


def test_there_are_examples() -> None:
    assert EXAMPLES


def test_the_first_example_is_shown_in_the_readme_with_its_output() -> None:
    readme = (ROOT / "README.md").read_text()
    assert (ROOT / "examples" / "first_decision.out").read_text() in readme
