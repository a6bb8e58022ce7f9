"""Examples on a page: their commands are run as written, and print what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
_EXAMPLE = re.compile(
    r"^```console\n(?P<commands>.*?)^```\n```text\n(?P<shown>.*?)^```$", re.MULTILINE | re.DOTALL
)


def check_examples(page: str, folder: Path) -> int:
    """Run all examples of a page, in a folder; returns how many there are."""
    found = list(_EXAMPLE.finditer((ROOT / page).read_text()))
    for example in found:
        commands = re.sub(r"^\$ ", "", example["commands"], flags=re.MULTILINE)
        assert _printed(commands, folder) == example["shown"], commands
    return len(found)


def _printed(commands: str, folder: Path) -> str:
    if not (folder / "examples").exists():
        for name, arguments in (("python", ""), ("moorage", " -m moorage")):
            command = folder / name
            command.write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
            command.chmod(0o755)
        (folder / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    ended = subprocess.run(
        ["sh", "-ec", commands], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
