"""The results of a simulation as one HTML page, with plots, that needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

from moorage.config.duration import Duration
from moorage.simulation.line_chart import Points, line_chart
from moorage.simulation.node_map import node_map, svg_of
from moorage.simulation.records import NodeRecord
from moorage.simulation.results import Sample, SimulationResult

_SECONDS_PER_HOUR: Final = 3600.0
_WAITING_BOUNDS: Final = (1, 5, 15, 60, 300, 900, 3600, 14400, 86400)
"""Upper bounds of the waiting times that are counted together, in seconds."""
_BAR_REM: Final = 20
"""The length of the longest bar."""
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Simulation</title><style>{style}</style>
</head>
<body><h1>Simulation</h1>
{body}
</body>
</html>
"""
_STYLE: Final = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: 0.2rem 1rem 0.2rem 0; vertical-align: top; }
figure { margin: 2rem 0; } svg { max-width: 100%; }
.bar { background: #326ce5; height: 0.8rem; display: inline-block; }
.partial { border-left: 4px solid #b3261e; padding-left: 1rem; }
"""


def html_report(
    result: SimulationResult, nodes: Sequence[NodeRecord], figures: Iterable[tuple[str, str]]
) -> str:
    """The page. figures: names and values of what is in the table at its top."""
    sections = [
        "" if result.complete else '<p class="partial">Interrupted: the results are those up to then.</p>',
        _table(("figure", "value"), figures),
        _figure("Utilisation: what pods request, in percent of what nodes have", _utilisation(result.course)),
        _figure(
            "Fragmentation: the part of what is free where a typical pod does not fit, in percent",
            _fragmentation(result.course),
        ),
        _figure("Pods that run, and pods that wait", _pods(result.course)),
        _figure("Waiting time, from the creation of a pod to its binding", _waiting(result)),
        _figure("Nodes over time: the darker, the more cpu is requested", _nodes(result, nodes)),
    ]
    if result.pending:
        rows = [(f"{each.pods:,}", each.message or "not tried") for each in result.pending]
        sections.append(f"<h2>Pending at the end</h2>{_table(('pods', 'reason'), rows)}")
    body = "\n".join(each for each in sections if each)
    return _PAGE.format(style=_STYLE, body=body)


def _figure(caption: str, content: str) -> str:
    return f"<figure><figcaption><strong>{escape(caption)}</strong></figcaption>{content}</figure>"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _hours(course: Sequence[Sample], values: Iterable[float]) -> Points:
    points = [
        (each.at_seconds / _SECONDS_PER_HOUR, value) for each, value in zip(course, values, strict=True)
    ]
    return points or [(0.0, 0.0)]


def _utilisation(course: Sequence[Sample]) -> str:
    lines = {
        "cpu": _hours(course, (100 * each.cpu for each in course)),
        "memory": _hours(course, (100 * each.memory for each in course)),
        **_by_resource(course, [each.extended for each in course]),
    }
    return line_chart(lines, "hours", "%")


def _fragmentation(course: Sequence[Sample]) -> str:
    lines = _by_resource(course, [each.fragmentation for each in course])
    return line_chart(lines or {"": _hours((), ())}, "hours", "%")


def _by_resource(course: Sequence[Sample], shares: Sequence[Mapping[str, float]]) -> dict[str, Points]:
    """A line in percent for each resource."""
    names = shares[0] if shares else ()
    return {name: _hours(course, (100 * each[name] for each in shares)) for name in names}


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
