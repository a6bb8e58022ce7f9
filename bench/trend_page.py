"""Published figures over time, to look at: docs/reference/benchmarks-over-time.md and its drawing.

A small chart for each workload that was measured more than once, all with the same runs on the x axis, and a
table that compares the last run of each workload with the one before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from bench.trend_entries import Entry

PAGE: Final = Path(__file__).parents[1] / "docs" / "reference" / "benchmarks-over-time.md"
DRAWING: Final = Path(__file__).parents[1] / "docs" / "images" / "benchmarks-over-time.svg"

_COLUMNS: Final = 3
_WIDTH, _HEIGHT = 300, 150
"""Of a chart with its title, in pixels."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 16, 56, 46, 26
"""What is around the lines of a chart, in pixels."""
_STYLE: Final = """\
text { fill: #1f2328; font: 12px sans-serif }
.note { fill: #59636e; font-size: 11px }
.axis { stroke: #d1d9e0 }
.line { stroke: #0969da; stroke-width: 2; fill: none }
.point { fill: #0969da }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc }
  .note { fill: #9198a1 }
  .axis { stroke: #3d444d }
  .line { stroke: #4493f8 }
  .point { fill: #4493f8 }
}"""
_HEAD: Final = """\
# Published figures over time

<!-- Written by `make bench-trend` from bench/trend.csv. -->

Pods per second and CPU per pod of the scheduler alone (`moorage bench --engine`, 2 cores) in every run
that was published. [bench/RESULTS.md](../../bench/RESULTS.md) has the newest figures in full, beside
kube-scheduler's, and how they are made; [benchmarks.md](../how-to/benchmarks.md#publish-figures) says
how a run is added. A run is of one machine on one day, and the same code differs by up to a half between
machines and hours: only larger differences say something.
"""


class _Pair(NamedTuple):
    """A workload's last entry, and the one before it if there is one."""

    last: Entry
    before: Entry | None


def runs_of(entries: Iterable[Entry]) -> dict[str, Entry]:
    """One entry of each run, by commit, in the file's order."""
    found: dict[str, Entry] = {}
    for each in entries:
        found.setdefault(each.commit, each)
    return found


def by_workload(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """The entries of each workload, in the file's order; workloads by name, and by the numbers in it."""
    found: dict[str, list[Entry]] = {}
    for each in entries:
        found.setdefault(each.workload, []).append(each)
    return {name: found[name] for name in sorted(found, key=_by_numbers)}


def _by_numbers(name: str) -> list[tuple[int, str]]:
    return [(int(each) if each.isdecimal() else 0, each) for each in re.split(r"(\d+)", name)]


# -- the page


def page(entries: Sequence[Entry]) -> str:
    """The page."""
    pairs = [_Pair(each[-1], each[-2] if len(each) > 1 else None) for each in by_workload(entries).values()]
    compared = [pair for pair in pairs if pair.before is not None]
    alone = [pair.last for pair in pairs if pair.before is None]
    parts = [
        _HEAD,
        "![A line for each workload: pods per second in each run](../images/benchmarks-over-time.svg)\n",
        "## The last run beside the one before\n",
        "A ratio above 1 is more pods per second; µs are those of CPU. Runs are named by commit.\n",
        _table(
            (
                "workload",
                "before",
                "last",
                "pods/s before",
                "pods/s",
                "ratio",
                "µs a pod before",
                "µs a pod",
            ),
            map(_compared, compared),
        ),
        "## Measured once\n",
        _table(("workload", "run", "pods/s", "µs a pod"), map(_alone, alone)),
        "## Runs\n",
        _table(("commit", "version", "date", "workloads", "machine"), _runs(entries)),
    ]
    return "\n".join(parts)


def _compared(pair: _Pair) -> tuple[str, ...]:
    last, before = pair
    assert before is not None
    ratio = f"{last.pods_per_second / before.pods_per_second:.2f}"
    rates = (f"{before.pods_per_second:,}", f"{last.pods_per_second:,}")
    return (last.workload, before.commit, last.commit, *rates, ratio, _cpu(before), _cpu(last))


def _alone(entry: Entry) -> tuple[str, ...]:
    return entry.workload, entry.commit, f"{entry.pods_per_second:,}", _cpu(entry)


def _runs(entries: Sequence[Entry]) -> Iterator[tuple[str, ...]]:
    for commit, first in runs_of(entries).items():
        count = sum(each.commit == commit for each in entries)
        yield commit, first.version, first.date, str(count), first.machine


def _cpu(entry: Entry) -> str:
    return "unknown" if entry.cpu_us_per_pod is None else f"{entry.cpu_us_per_pod:,}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


# -- the drawing


def drawing(entries: Sequence[Entry]) -> str:
    """A chart for each workload that was measured more than once, as SVG for light and dark pages."""
    runs = list(runs_of(entries).values())
    several = [each for each in by_workload(entries).values() if len(each) > 1]
    rows = -(-len(several) // _COLUMNS)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH * _COLUMNS} {_HEIGHT * rows}">',
        f"<style>\n{_STYLE}\n</style>",
    ]
    for at, each in enumerate(several):
        row, column = divmod(at, _COLUMNS)
        parts += [
            f'<g transform="translate({column * _WIDTH} {row * _HEIGHT})">',
            *_chart(each, runs),
            "</g>",
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _chart(entries: Sequence[Entry], runs: Sequence[Entry]) -> Iterator[str]:
    """The lines of one workload's chart: its y axis begins at zero, its x axis has all runs."""
    most = max(each.pods_per_second for each in entries)
    places = {run.commit: at / max(len(runs) - 1, 1) for at, run in enumerate(runs)}
    floor = _HEIGHT - _BOTTOM

    def point(entry: Entry) -> tuple[float, float]:
        across = _LEFT + places[entry.commit] * (_WIDTH - _LEFT - _RIGHT)
        return across, floor - entry.pods_per_second / most * (floor - _TOP)

    points = [point(each) for each in entries]
    name, _, size = entries[-1].workload.partition("/")
    yield _text(_LEFT, 16, name)
    yield _text(_LEFT, 31, size, "note")
    yield f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{floor}" y2="{floor}"/>'
    yield f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'
    for x, y in points:
        yield f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
    yield _text(points[-1][0] + 6, points[-1][1] + 4, f"{entries[-1].pods_per_second:,}")
    yield _text(_LEFT, floor + 16, _day(runs[0]), "note")
    yield _text(_WIDTH - _RIGHT, floor + 16, _day(runs[-1]), "note", "end")


def _day(run: Entry) -> str:
    day = date.fromisoformat(run.date)
    return f"{run.version}, {day.day} {day:%b %Y}"


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    of_kind = f' class="{kind}"' if kind else ""
    return f'<text{of_kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
