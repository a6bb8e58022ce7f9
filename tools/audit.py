"""Check what is installed: `python -m tools.audit requirements/development.txt --pip-audit PATH`.

First, whether the environment is what the lock says. Then, whether a vulnerability is known of anything in
it: that takes a database on the network. Where none answers, this is said, and only the first check counts.
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
"""In an environment without being in its lock: the project, and what Python's venv puts there."""


def main() -> int:
    """Print what is found; 1 if something is wrong."""
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
    """How an environment (versions by name) is not what a lock says, a line each."""
    here = {each.name: each.version for each in locked if not each.marker or Marker(each.marker).evaluate()}
    for name in sorted(here.keys() | installed.keys() - _UNLOCKED):
        if here.get(name) != installed.get(name):
            yield f"{name}: {installed.get(name, 'not')} installed, {here.get(name, 'not')} locked"


def _audit(lock: Path, program: Path | None) -> bool:
    """Whether vulnerabilities are known; what is found is printed."""
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
    """What pip-audit says of each package; one that it could not ask about has no `vulns`."""
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
