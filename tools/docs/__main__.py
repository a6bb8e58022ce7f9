"""Build the site: `python -m tools.docs`; `--output` for another folder than build/docs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.docs.build import ROOT, build
from tools.docs.built import problems


def main() -> int:
    """Build and check the site; status 1 if Sphinx warns of something, or a link leads nowhere."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "docs", help="the folder of the site")
    output: Path = parser.parse_args().output
    if (status := build(output, output.with_name(f"{output.name}-source"))) != 0:
        return status
    found = problems(output)
    for line in found or [f"The site is at {output / 'index.html'}"]:
        print(line)  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
