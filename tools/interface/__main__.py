"""Bring the listings of the interface up to date: `python -m tools.interface [--release VERSION]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from tools.interface.changelog import releases
from tools.interface.kinds import KINDS
from tools.interface.listing import brought_up_to_date, listing, read_listing, released
from tools.interface.source import ROOT

LISTINGS: Final = ROOT / "tests" / "stability" / "interface"
CHANGELOG: Final = ROOT / "CHANGELOG.md"


def main() -> int:
    """Write all listings; status 1 if the version to release is not the newest of CHANGELOG.md."""
    parser = argparse.ArgumentParser(description="Bring the listings of the interface up to date.")
    parser.add_argument("--release", metavar="VERSION", help="what is unreleased belongs to this version")
    version: str | None = parser.parse_args().release
    if version is not None and (problem := not_to_release(version, CHANGELOG.read_text("utf-8"))):
        sys.stderr.write(f"{problem}\n")
        return 1
    for kind in KINDS:
        path = LISTINGS / f"{kind.name}.txt"
        lines = brought_up_to_date(read_listing(text_of(path)), kind.facts())
        path.write_text(listing(kind.title, released(lines, version) if version else lines), "utf-8")
    return 0


def text_of(path: Path) -> str:
    """The text of a listing; empty if there is none yet."""
    return path.read_text("utf-8") if path.exists() else ""


def not_to_release(version: str, changelog: str) -> str:
    """Why a version cannot be released; empty: it can."""
    unreleased, newest = releases(changelog)[:2]
    if unreleased.groups:
        return f"CHANGELOG.md has entries under [{unreleased.name}]: put them under [{version}] first"
    if newest.name != version:
        return f"the newest version in CHANGELOG.md is {newest.name}, not {version}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
