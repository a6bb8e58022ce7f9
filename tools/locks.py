"""The lock files under requirements/: exact versions, each with the SHA-256 of all its files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_ENTRY = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\]+?))?(?: --hash=\S+)+")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})(?!\S)")


class LockError(ValueError):
    """A line that is not an exact version with hashes."""


@dataclass(frozen=True, slots=True)
class Locked:
    """One version of a package; an empty marker applies to all platforms."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


def read_lock(path: Path) -> list[Locked]:
    """The entries of a lock file. LockError for one without hashes."""
    text = re.sub(r" \\\n\s+", " ", path.read_text())
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [_locked(line) for line in lines]


def _locked(line: str) -> Locked:
    entry = _ENTRY.fullmatch(line)
    hashes = tuple(_HASH.findall(line))
    if entry is None or not hashes or len(hashes) != line.count("--hash="):
        raise LockError(f"not an exact version with SHA-256 hashes: {line[:100]}")
    return Locked(canonical(entry["name"]), entry["version"], entry["marker"] or "", hashes)


def canonical(name: str) -> str:
    """A package's normalised name, as used by package indexes."""
    return re.sub(r"[-_.]+", "-", name).lower()
