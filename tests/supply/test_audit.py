"""What `make audit` says of an environment, with a database of vulnerabilities and without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.audit import differences
from tools.locks import Locked

ROOT = Path(__file__).parent.parent.parent
LOCK = [
    Locked("numpy", "2.4.6", "", ()),
    Locked("six", "1.17.0", "", ()),
    Locked("colorama", "0.4.6", "sys_platform == 'win32'", ()),
]


@pytest.mark.parametrize(
    ("installed", "messages"),
    [
        ({"numpy": "2.4.6", "six": "1.17.0", "moorage": "0.1.0", "pip": "1"}, []),
        ({"numpy": "2.4.5", "six": "1.17.0"}, ["numpy: 2.4.5 installed, 2.4.6 locked"]),
        ({"numpy": "2.4.6"}, ["six: not installed, 1.17.0 locked"]),
        ({"numpy": "2.4.6", "six": "1.17.0", "left-pad": "1"}, ["left-pad: 1 installed, not locked"]),
    ],
    ids=["as locked", "another version", "missing", "more than is locked"],
)
def test_an_environment_is_what_its_lock_says(installed: dict[str, str], messages: list[str]) -> None:
    assert list(differences(LOCK, installed)) == messages


def audit(folder: Path, says: str) -> subprocess.CompletedProcess[str]:
    """The command, with a pip-audit that says this."""
    program = folder / "pip-audit"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\n")
    program.chmod(0o755)
    words = ["-m", "tools.audit", "requirements/development.txt", "--pip-audit", str(program)]
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)


def test_without_a_database_it_is_reported_that_none_was_reached(tmp_path: Path) -> None:
    skipped = {"dependencies": [{"name": "six", "skip_reason": "not found"}]}
    done = audit(tmp_path, json.dumps(skipped))
    assert (done.returncode, done.stderr) == (0, "")
    assert "No vulnerability database was reached" in done.stdout


def test_a_known_vulnerability_fails_the_audit(tmp_path: Path) -> None:
    known = {"name": "six", "version": "1.17.0", "vulns": [{"id": "PYSEC-0000-1"}]}
    done = audit(tmp_path, json.dumps({"dependencies": [known, {**known, "name": "rich", "vulns": []}]}))
    assert done.returncode == 1
    assert "2 packages audited, 1 with known vulnerabilities." in done.stdout
    assert "six 1.17.0: PYSEC-0000-1" in done.stdout
