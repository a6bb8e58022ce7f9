"""The examples of the page about simulations print what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(
    r"^```console\n\$ moorage (simulate [^\n]*(?:examples|--gangs|--generate)[^\n]*)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
EXAMPLES = BLOCK.findall((ROOT / "docs/how-to/simulating.md").read_text())


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=["random", "gangs", "controllers"])
def test_an_example_prints_what_the_page_shows(command: str, shown: str) -> None:
    words = [sys.executable, "-m", "moorage", *shlex.split(command)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == shown
