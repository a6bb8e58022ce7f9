"""The results of a sweep as one HTML page, with a plot for each scenario; it needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from moorage.simulation.html_page import INTERRUPTED, figure, page, table
from moorage.sweep.results import SweepResult, SweepRow
from moorage.sweep.scatter_chart import scatter_chart
from moorage.sweep.tables import seeds_of, shown


def html_report(result: SweepResult) -> str:
    """The page."""
    sections = ["" if result.complete else INTERRUPTED]
    for scenario in dict.fromkeys(row.scenario for row in result.rows):
        rows = [row for row in result.rows if row.scenario == scenario]
        sections += [f"<h2>{escape(scenario)}</h2>", _plot(result, rows), _table(result, rows)]
    if result.failures:
        sections += ["<h2>Failed</h2>", _failures(result)]
    return page("Sweep", sections)


def _plot(result: SweepResult, rows: Sequence[SweepRow]) -> str:
    """The first two objectives; nothing if there is only one."""
    if len(result.objectives) < 2:
        return ""
    (x, x_goal), (y, y_goal), *_ = result.objectives.items()
    caption = f"{x_goal} {x}, {y_goal} {y}: means over seeds, with 95 % confidence intervals"
    return figure(caption, scatter_chart(rows, x, y))


def _table(result: SweepResult, rows: Sequence[SweepRow]) -> str:
    figures = list(result.objectives)
    return table(("best", "configuration", "version", "seeds", *figures), _cells(figures, rows))


def _cells(figures: Sequence[str], rows: Sequence[SweepRow]) -> Iterator[list[str]]:
    """The rows; those on the front with the numbers that they have in the plot."""
    number = 0
    for row in rows:
        number += row.best
        mark = str(number) if row.best else ""
        estimates = (shown(row.estimates[each]) for each in figures)
        yield [mark, row.label, row.kubernetes, seeds_of(row), *estimates]


def _failures(result: SweepResult) -> str:
    header = ("configuration", "scenario", "version", "seed", "reason")
    rows = (
        (each.configuration, each.scenario, each.kubernetes, str(each.seed), each.reason)
        for each in result.failures
    )
    return table(header, rows)
