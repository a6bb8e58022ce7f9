"""Measures everything that bench/RESULTS.md has a row for, and writes the figures into its tables.

    python -m bench.publish --perf kubernetes/test/integration/scheduler_perf \
        --compare-with kube-scheduler=kubernetes/scheduler_perf.test

A table begins below a comment that names a directory of workload files, `<!-- workloads: $PERF/misc -->`, and
its rows say which workloads are measured. `$PERF` is scheduler_perf's directory in a checkout of Kubernetes,
`$NEXT` that of the next release, with a binary of its own (--next-perf, --next-compare-with). Each is run
with `--engine`, in turn with kube-scheduler if there is a binary, and with `--http`; a dash in the column of
kube-scheduler or HTTP leaves that out. Reports are kept in --results, and what has a complete report is not
measured again: an interrupted run goes on where it was. Cells without a new figure are left as they are.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from bench.cold import Times
from moorage.api.decode import InputError
from moorage.api.files import read_text
from moorage.bench.results import BenchmarkReport, Parts, WorkloadResult, read_report
from moorage.bench.rounds import spread
from moorage.bench.tables import shown_spread

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "RESULTS.md"
PERF: Final = "$PERF"
NEXT: Final = "$NEXT"
"""Stand for scheduler_perf's directory in comments: of the release that is measured, and of the next."""
UNMEASURED: Final = "not measured"
FAILED: Final = "failed"
UNWANTED: Final = "-"
"""What is not to be measured: it would take hours, or more memory than there is."""
DEFAULT_ROUNDS: Final = 5

_TABLE = re.compile(r"<!-- workloads: (\S+) -->\n+((?:\|.*\n)+)")
_COLD_TABLE = re.compile(r"(<!-- cold -->\n+\|.*\n\|.*\n)(?:\|.*\n)*")
_SUMMARY = re.compile(r"(<!-- smallest ratio -->\n)(?:.+\n)*")
_LEADING_RATIO = re.compile(r"([\d.,]+)x")

WORKLOAD, ENGINE, CPU, MEMORY, HTTP, HTTP_CPU, REFERENCE, RATIO = range(8)
"""The columns of a table of workloads."""


class Section(NamedTuple):
    """A table of workloads."""

    directory: str
    rows: list[list[str]]


def sections(text: str) -> list[Section]:
    """The tables of workloads in a document."""
    return [Section(found[1], _rows(found[2])) for found in _TABLE.finditer(text)]


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()[2:]]


def updated(text: str, reports: Iterable[tuple[str, BenchmarkReport]], cold: Sequence[Times] = ()) -> str:
    """The document with new figures; each report comes with its mode."""
    cells: dict[str, dict[int, str]] = {}
    for mode, report in reports:
        rate_column, figures = (ENGINE, _engine_cells) if mode == "engine" else (HTTP, _http_cells)
        for result in report.workloads:
            cells.setdefault(result.name, {}).update(figures(result))
        for failed in report.failed:
            is_other = bool(report.reference) and failed.reason.startswith(f"{report.reference}:")
            cells.setdefault(failed.name, {})[REFERENCE if is_other else rate_column] = FAILED

    def table(found: re.Match[str]) -> str:
        head = found[0][: found.start(2) - found.start()] + "".join(found[2].splitlines(keepends=True)[:2])
        rows = (
            [cells.get(row[WORKLOAD], {}).get(column, cell) for column, cell in enumerate(row)]
            for row in _rows(found[2])
        )
        return head + "".join(f"| {' | '.join(row)} |\n" for row in rows)

    text = _TABLE.sub(table, text)
    if cold:
        text = _COLD_TABLE.sub(lambda found: found[1] + "".join(map(_cold_row, cold)), text)
    return _SUMMARY.sub(lambda found: f"{found[1]}{summary(sections(text))}\n", text)


def _engine_cells(result: WorkloadResult) -> dict[int, str]:
    memory = result.peak_memory_bytes.scheduler
    cells = {
        ENGINE: _rates(result),
        CPU: _least([_microseconds(each.cpu_seconds_per_pod)[0] for each in result.rounds]),
        MEMORY: UNMEASURED if memory is None else f"{memory / 1e6:,.0f}",
    }
    others = [each.reference_pods_per_second for each in result.rounds]
    if known := [each for each in others if each is not None]:
        cells[REFERENCE] = shown_spread(spread(known), ",.0f")
        cells[RATIO] = shown_spread(spread(result.ratios), ",.1f", "x")
    return cells


def _http_cells(result: WorkloadResult) -> dict[int, str]:
    parts = zip(*(_microseconds(each.cpu_seconds_per_pod) for each in result.rounds), strict=True)
    return {HTTP: _rates(result), HTTP_CPU: " / ".join(_least(each) for each in parts)}


def _rates(result: WorkloadResult) -> str:
    return shown_spread(spread(each.pods_per_second for each in result.rounds), ",.0f")


def _microseconds(parts: Parts) -> list[float | None]:
    found = (parts.scheduler, parts.server, parts.generator)
    return [None if each is None else each * 1e6 for each in found]


def _least(values: Iterable[float | None]) -> str:
    known = [each for each in values if each is not None]
    return f"{min(known):,.0f}" if known else UNMEASURED


def _cold_row(times: Times) -> str:
    figures = (times.cold_median, times.cold_p90, times.warm_median)
    return f"| {times.variant} | {' | '.join(f'{each:,.0f}' for each in figures)} |\n"


def summary(tables: Iterable[Section]) -> str:
    """The smallest ratio to kube-scheduler of all tables, what has failed, and what has no ratio yet."""
    rows = [row for table in tables for row in table.rows]
    ratios = {row[WORKLOAD]: float(found[1].replace(",", "")) for row in rows if (found := _ratio(row))}
    words = []
    if ratios:
        name = min(ratios, key=ratios.__getitem__)
        words.append(f"**Smallest ratio to kube-scheduler: {ratios[name]:g}x, {name}.**")
    failed = [row[WORKLOAD] for row in rows if row[ENGINE].startswith(FAILED)]
    if failed:
        words.append(f"Failed: {', '.join(failed)}.")
    wanted = sum(row[REFERENCE] != UNWANTED for row in rows)
    words.append(f"{len(ratios)} of {wanted} workloads have been measured beside kube-scheduler.")
    return " ".join(words)


def _ratio(row: Sequence[str]) -> re.Match[str] | None:
    return _LEADING_RATIO.match(row[RATIO])


class Checkout(NamedTuple):
    """scheduler_perf in a checkout of Kubernetes."""

    directory: Path | None = None
    """Its directory; None if it is not there, and its workloads are not run."""
    reference: str = ""
    """The name of the scheduler and the binary, as for `--compare-with`."""


class Run(NamedTuple):
    """A call of `moorage bench` for one workload."""

    mode: str
    rounds: int
    output: Path
    """The file of its report."""
    arguments: list[str]
    reference: str = ""
    """The name of the scheduler that this one is compared with."""

    def is_complete(self) -> bool:
        """Whether there is a report with all rounds of both schedulers, or why there are none."""
        if not self.output.exists():
            return False
        report = read_report(self.output)
        if self.reference not in ("", report.reference):
            return False
        if report.failed or report.refused:
            return True
        return bool(report.workloads) and all(len(each.rounds) == self.rounds for each in report.workloads)


def runs(
    tables: Iterable[Section], checkouts: Mapping[str, Checkout], results: Path, rounds: int = DEFAULT_ROUNDS
) -> Iterator[Run]:
    """What has to be run for all tables; workloads of this repository are run with the binary of `$PERF`."""
    for section in tables:
        variable, _, topic = section.directory.partition("/")
        perf, reference = checkouts.get(variable, Checkout(Path(variable), checkouts[PERF].reference))
        if perf is None:
            continue
        directory = str(perf / topic)
        for row in section.rows:
            in_turn = ["--compare-with", reference] if reference and row[REFERENCE] != UNWANTED else []
            wanted = [("engine", in_turn)]
            if row[HTTP] != UNWANTED:
                wanted.append(("http", []))
            for mode, more in wanted:
                output = results / f"{row[WORKLOAD].replace('/', '_')}-{mode}.json"
                words = [directory, f"--{mode}", "--only", row[WORKLOAD], "--rounds", str(rounds), *more]
                other = reference.partition("=")[0] if more else ""
                yield Run(mode, rounds, output, [*words, "--output", str(output)], other)


def measure(planned: Iterable[Run], cold: Path) -> None:
    """Run what is not complete; SystemExit with a message if that is interrupted or impossible."""
    if not cold.exists():
        _call("bench.cold", "--output", str(cold))
    for each in planned:
        if not each.is_complete():
            _call("moorage", "bench", *each.arguments)
            if not each.output.exists():
                raise SystemExit("bench.publish: there is no report")


def _call(module: str, *words: str) -> None:
    """Run a module; status 1 is a workload that failed, which its report has."""
    status = subprocess.run([sys.executable, "-m", module, *words], cwd=ROOT, check=False).returncode
    if status not in (0, 1):
        raise SystemExit(f"bench.publish: interrupted, status {status}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure everything and write the tables of RESULTS.md.")
    parser.add_argument("--perf", type=Path, help="scheduler_perf's directory in a checkout of Kubernetes")
    parser.add_argument("--compare-with", default="", metavar="NAME=BINARY", help="as for moorage bench")
    parser.add_argument("--next-perf", type=Path, help="the same of the next release")
    parser.add_argument("--next-compare-with", default="", metavar="NAME=BINARY", help="a binary of that")
    parser.add_argument("--rounds", type=int, default=DEFAULT_ROUNDS, help="default: %(default)s")
    parser.add_argument("--results", type=Path, default=ROOT / "build/bench", help="default: build/bench")
    parser.add_argument("--only-write", action="store_true", help="write what there are reports of")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    text, cold = RESULTS.read_text(), options.results / "cold.json"
    tables = sections(text)
    checkouts = {
        PERF: Checkout(options.perf, options.compare_with),
        NEXT: Checkout(options.next_perf, options.next_compare_with),
    }
    planned = list(runs(tables, checkouts, options.results, options.rounds))
    try:
        if not options.only_write:
            measure(planned, cold)
    finally:
        reports = [(each.mode, read_report(each.output)) for each in planned if each.output.exists()]
        times = msgspec.json.decode(read_text(cold), type=list[Times]) if cold.exists() else []
        RESULTS.write_text(updated(text, reports, times))


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"bench.publish: {error}")
