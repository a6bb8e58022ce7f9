"""Adds the figures of a release to bench/trend.csv, and draws bench/trend.svg.

    python -m bench.trend results.json... [--machine TEXT] [--commit HASH] [--date YYYY-MM-DD]

The files are reports of `moorage bench --engine --rounds 5 --output results.json`. A line is a workload's
median of pods/s and its least CPU per pod in one commit; the same commit and workload are replaced, not
repeated. Without files, only the chart is drawn.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path

import msgspec

from moorage.api.decode import InputError
from moorage.bench.results import BenchmarkReport, read_report
from moorage.simulation.line_chart import line_chart

TREND = Path(__file__).parent / "trend.csv"
CHART = Path(__file__).parent / "trend.svg"


class Entry(msgspec.Struct, frozen=True):
    """A line of the file."""

    version: str
    commit: str
    date: str
    workload: str
    pods_per_second: int
    """Median of all rounds."""
    cpu_us_per_pod: int | None
    """Microseconds of CPU per pod in the round that took the least."""
    machine: str


def read(text: str) -> list[Entry]:
    """The lines of a file; an empty CPU time is unknown."""
    rows = ({key: value or None for key, value in row.items()} for row in csv.DictReader(StringIO(text)))
    return [msgspec.convert(row, Entry, strict=False) for row in rows]


def write(entries: Iterable[Entry]) -> str:
    """The text of a file."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Entry.__struct_fields__)
    writer.writerows(msgspec.structs.astuple(each) for each in entries)
    return text.getvalue()


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


def added(old: Iterable[Entry], new: Iterable[Entry]) -> list[Entry]:
    """Old lines and new ones, which replace those of the same commit and workload."""
    kept = {(each.commit, each.workload): each for each in old}
    kept.update({(each.commit, each.workload): each for each in new})
    return list(kept.values())


def chart(entries: Iterable[Entry]) -> str:
    """A line for each workload over the commits, in the file's order."""
    known = list(entries)
    places = {commit: float(at) for at, commit in enumerate(dict.fromkeys(each.commit for each in known))}
    lines: dict[str, list[tuple[float, float]]] = {}
    for each in known:
        lines.setdefault(each.workload, []).append((places[each.commit], each.pods_per_second))
    names = {place: commit for commit, place in places.items()}
    return line_chart(lines, "commit", "pods/s, median (engine)", names)


def this_machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


def of_head(placeholder: str) -> str:
    """A property of the checked-out commit, by git's name for it."""
    command = ["git", "log", "-1", f"--format={placeholder}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description="Add figures to bench/trend.csv and draw bench/trend.svg.")
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
    CHART.write_text(chart(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
