"""Check the installed packages: `python -m tools.audit requirements/development.txt --pip-audit PATH`.

First, whether the environment matches the lock. Then, whether any package has a known vulnerability, which
requires a database on the network. If none is available, this is reported, and only the first check counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from packaging.markers import Marker

from tools.locks import Locked, canonical, read_lock

_UNLOCKED = {"moorage", "moorage-cluster", "pip", "setuptools"}
"""Packages that are installed but not locked: the project's, and those that Python's venv installs."""


def main() -> int:
    """Print the findings; returns 1 if there are any."""
    parser = argparse.ArgumentParser(description="Compare an environment with its lock, and audit the lock.")
    parser.add_argument("lock", type=Path, help="requirements with hashes")
    parser.add_argument("--pip-audit", type=Path, help="the pip-audit to run")
    chosen = parser.parse_args()
    installed = {canonical(each.metadata["Name"]): each.version for each in distributions()}
    wrong = [*differences(read_lock(chosen.lock), installed)]
    for line in wrong or [f"{len(installed)} installed packages are those of {chosen.lock}."]:
        _say(line)
    return 1 if _audit(chosen.lock, chosen.pip_audit) or wrong else 0


def differences(locked: list[Locked], installed: dict[str, str]) -> Iterator[str]:
    """The differences between an environment (versions by name) and a lock, one line each."""
    here = {each.name: each.version for each in locked if not each.marker or Marker(each.marker).evaluate()}
    for name in sorted(here.keys() | installed.keys() - _UNLOCKED):
        if here.get(name) != installed.get(name):
            yield f"{name}: {installed.get(name, 'not')} installed, {here.get(name, 'not')} locked"


def _audit(lock: Path, program: Path | None) -> bool:
    """Whether there are known vulnerabilities; prints them."""
    audited = [each for each in _reports(lock, program) if "vulns" in each]
    if not audited:
        _say("No vulnerability database was reached: only versions were compared.")
        return False
    vulnerable = [each for each in audited if each["vulns"]]
    _say(f"{len(audited)} packages audited, {len(vulnerable)} with known vulnerabilities.")
    for each in vulnerable:
        known = ", ".join(one["id"] for one in each["vulns"])
        _say(f"{each['name']} {each['version']}: {known}")
    return bool(vulnerable)


def _reports(lock: Path, program: Path | None) -> list[dict[str, Any]]:
    """pip-audit's report on each package; one that it could not check has no `vulns`."""
    if program is None or not program.exists():
        return []
    words = ["--require-hashes", "--disable-pip", "--progress-spinner=off", "--format=json", "--requirement"]
    done = subprocess.run([program, *words, lock], capture_output=True, text=True, check=False)
    try:
        reports: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        _say((done.stderr.strip() or "pip-audit said nothing").splitlines()[-1])
        return []
    return reports


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
