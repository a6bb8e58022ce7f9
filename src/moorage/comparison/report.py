"""A comparison as one HTML page, with plots of all runs in one, that needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Final

from moorage.comparison.results import RunDifference
from moorage.comparison.run import ComparedRuns
from moorage.comparison.tables import Table, figures_of, pending_of, summary_of, tables_of
from moorage.simulation.html_page import INTERRUPTED, figure, page, table
from moorage.simulation.line_chart import Points, line_chart
from moorage.simulation.node_map import node_map, svg_of
from moorage.simulation.report import hours
from moorage.simulation.results import Sample, SimulationResult
from moorage.simulation.run import SimulationRun

_TOP: Final = 50
"""Maximum number of rows of a table."""
_WAITING_POINTS: Final = 100
"""Number of steps of the curve of waiting times: a percentage each."""


def comparison_report(compared: ComparedRuns) -> str:
    """The page."""
    comparison, runs = compared
    sections = [
        "" if comparison.complete else INTERRUPTED,
        _table(figures_of(comparison)),
        _table(pending_of(comparison)),
        *(_difference(each) for each in comparison.differences),
        *_plots(runs),
    ]
    return page("Comparison", sections)


def _difference(difference: RunDifference) -> str:
    sentences = "".join(f"<p>{escape(each)}</p>" for each in summary_of(difference))
    tables = "".join(_table(each) for each in tables_of(difference, _TOP))
    return f"<h2>{escape(difference.name)}</h2>{sentences}{tables}"


def _table(shown: Table) -> str:
    if not shown.rows:
        return ""
    content = table([each.lower() if each.isupper() else each for each in shown.header], shown.rows)
    more = f"<p>and {shown.left_out:,} more</p>" if shown.left_out else ""
    return figure(shown.title, content + more) if shown.title else content


def _plots(runs: Mapping[str, SimulationRun]) -> Iterator[str]:
    results = {name: run.result for name, run in runs.items()}
    for caption, unit, value in (
        ("cpu that pods request, in percent of what nodes have", "%", lambda each: 100 * each.cpu),
        ("memory that pods request, in percent of what nodes have", "%", lambda each: 100 * each.memory),
        ("Pods that wait", "pods", lambda each: each.pending_pods),
    ):
        yield figure(caption, line_chart(_over_time(results, value), "hours", unit))
    waits = {name: _waiting(each) for name, each in results.items()}
    yield figure("How long the given share of the pods waited at most", line_chart(waits, "% of pods", "s"))
    for name, run in runs.items():
        if run.nodes:
            drawn = svg_of(node_map(run.nodes, run.result.placements, run.result.seconds))
            yield figure(f"{name}: nodes over time; the darker, the more cpu is requested", drawn)


def _over_time(
    results: Mapping[str, SimulationResult], value: Callable[[Sample], float]
) -> dict[str, Points]:
    return {name: hours(each.course, map(value, each.course)) for name, each in results.items()}


def _waiting(result: SimulationResult) -> Points:
    """The waiting time that a percentage of the pods did not exceed, for each percentage."""
    waited = sorted(seconds for pod in result.placements if (seconds := pod.waiting_seconds) is not None) or [
        0.0
    ]
    last = len(waited) - 1
    return [
        (float(percent), waited[last * percent // _WAITING_POINTS]) for percent in range(_WAITING_POINTS + 1)
    ]
