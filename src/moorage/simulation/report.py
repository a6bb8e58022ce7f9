"""The results of a simulation as one HTML page, with plots, that needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from moorage.config.duration import Duration
from moorage.simulation.html_page import PARTIAL, figure, page, table
from moorage.simulation.line_chart import Points, line_chart
from moorage.simulation.node_map import node_map, svg_of
from moorage.simulation.records import NodeRecord
from moorage.simulation.results import Sample, SimulationResult

_SECONDS_PER_HOUR: Final = 3600.0
_WAITING_BOUNDS: Final = (1, 5, 15, 60, 300, 900, 3600, 14400, 86400)
"""Upper bounds of the waiting times that are counted together, in seconds."""
_BAR_REM: Final = 20
"""The length of the longest bar."""


def html_report(
    result: SimulationResult, nodes: Sequence[NodeRecord], figures: Iterable[tuple[str, str]]
) -> str:
    """The page. figures: names and values of what is in the table at its top."""
    sections = [
        "" if result.complete else PARTIAL,
        table(("figure", "value"), figures),
        figure("Utilisation: what pods request, in percent of what nodes have", _utilisation(result.course)),
        figure("Pods that run, and pods that wait", _pods(result.course)),
        figure("Waiting time, from the creation of a pod to its binding", _waiting(result)),
        figure("Nodes over time: the darker, the more cpu is requested", _nodes(result, nodes)),
    ]
    if result.pending:
        rows = [(f"{each.pods:,}", each.message or "not tried") for each in result.pending]
        sections.append(f"<h2>Pending at the end</h2>{table(('pods', 'reason'), rows)}")
    return page("Simulation", sections)


def _hours(course: Sequence[Sample], values: Iterable[float]) -> Points:
    points = [
        (each.at_seconds / _SECONDS_PER_HOUR, value) for each, value in zip(course, values, strict=True)
    ]
    return points or [(0.0, 0.0)]


def _utilisation(course: Sequence[Sample]) -> str:
    lines = {
        "cpu": _hours(course, (100 * each.cpu for each in course)),
        "memory": _hours(course, (100 * each.memory for each in course)),
    }
    return line_chart(lines, "hours", "%")


def _pods(course: Sequence[Sample]) -> str:
    lines = {
        "running": _hours(course, (each.running_pods for each in course)),
        "pending": _hours(course, (each.pending_pods for each in course)),
    }
    return line_chart(lines, "hours", "pods")


def _waiting(result: SimulationResult) -> str:
    """A bar for each span of waiting times."""
    counts = [0] * (len(_WAITING_BOUNDS) + 1)
    for pod in result.placements:
        if (seconds := pod.waiting_seconds) is not None:
            counts[sum(seconds > bound for bound in _WAITING_BOUNDS)] += 1
    names = [f"up to {Duration(bound)}" for bound in _WAITING_BOUNDS] + ["longer"]
    largest = max(counts) or 1
    rows = "".join(
        f"<tr><td>{name}</td><td>{count:,}</td><td>{_bar(count / largest)}</td></tr>"
        for name, count in zip(names, counts, strict=True)
        if count
    )
    head = '<th scope="col">waited</th><th scope="col">pods</th><th></th>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _bar(share: float) -> str:
    return f'<span class="bar" style="width:{_BAR_REM * share:.2f}rem"></span>'


def _nodes(result: SimulationResult, nodes: Sequence[NodeRecord]) -> str:
    return svg_of(node_map(nodes, result.placements, result.seconds)) if nodes else ""
