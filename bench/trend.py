"""Adds the figures of a release to bench/trend.csv, and writes docs/reference/benchmarks-over-time.md.

    python -m bench.trend results.json... [--machine TEXT] [--commit HASH] [--date YYYY-MM-DD]

The files are reports of `moorage bench --engine --rounds 5 --output results.json`. A line is a workload's
median of pods/s and its least CPU per pod in one commit; the same commit and workload are replaced, not
repeated. Without files, only the page and its drawing are written.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.trend_entries import TREND, Entry, added, read, write
from bench.trend_page import DRAWING, PAGE, drawing, page
from moorage.api.decode import InputError
from moorage.bench.results import BenchmarkReport, read_report


def entries_of(report: BenchmarkReport, commit: str, date: str, machine: str) -> Iterator[Entry]:
    """The lines for the workloads of a report."""
    for result in report.workloads:
        used = [part.cpu_seconds_per_pod.scheduler for part in result.rounds]
        known = [each for each in used if each is not None]
        yield Entry(
            report.version,
            commit,
            date,
            result.name,
            round(result.pods_per_second.average),
            round(min(known) * 1e6) if known else None,
            machine,
        )


def this_machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


def of_head(placeholder: str) -> str:
    """A property of the checked-out commit, by git's name for it."""
    command = ["git", "log", "-1", f"--format={placeholder}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description="Add figures to bench/trend.csv, and write their page.")
    parser.add_argument("reports", type=Path, nargs="*", metavar="REPORT")
    parser.add_argument("--machine", default=this_machine(), help="default: %(default)s")
    parser.add_argument("--commit", help="default: that of the working tree")
    parser.add_argument("--date", help="default: that of the commit")
    options = parser.parse_args()
    entries = read(TREND.read_text())
    try:
        for path in options.reports:
            report = read_report(path)
            if report.mode != "engine":
                raise InputError(str(path), f"the trend is that of --engine, not of --{report.mode}")
            commit, date = options.commit or of_head("%h"), options.date or of_head("%cs")
            entries = added(entries, entries_of(report, commit, date, options.machine))
    except InputError as error:
        print(f"bench.trend: {error}", file=sys.stderr)
        return 1
    TREND.write_text(write(entries))
    PAGE.write_text(page(entries))
    DRAWING.write_text(drawing(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
