"""The samples of a soak as one SVG: a chart for each measure, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.simulation.line_chart import HEIGHT, LEGEND_WIDTH, WIDTH, Points, line_chart
from moorage_cluster.soak.samples import BLOCKS, DESCRIPTORS, RESIDENT, TASKS, Sample, curves

_SECONDS_PER_HOUR: Final = 3600.0
_ABSCISSA: Final = "hours"


def soak_chart(samples: Sequence[Sample]) -> str:
    """All measures over time."""
    hours = [each.seconds / _SECONDS_PER_HOUR for each in samples]
    measured = dict(curves(samples))
    drawn: list[tuple[str, dict[str, Points]]] = [
        (what, {"": [(hour, value) for hour, (_, value) in zip(hours, measured[what], strict=True)]})
        for what in (RESIDENT, BLOCKS, DESCRIPTORS, TASKS)
        if what in measured
    ]
    drawn += [
        ("pods per second", {"": _points(hours, [each.pods_per_second for each in samples])}),
        ("CPU for each pod (ms)", {"": _points(hours, [each.cpu_milli for each in samples])}),
        (
            "seconds from creation to binding",
            {
                "50 %": _points(hours, [each.latencies.p50 for each in samples]),
                "90 %": _points(hours, [each.latencies.p90 for each in samples]),
                "99 %": _points(hours, [each.latencies.p99 for each in samples]),
            },
        ),
    ]
    charts = [
        _placed(line_chart(lines, _ABSCISSA, what), row, len(lines))
        for row, (what, lines) in enumerate(drawn)
    ]
    size = f'viewBox="0 0 {WIDTH + LEGEND_WIDTH} {HEIGHT * len(charts)}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', *charts, "</svg>"]) + "\n"


def _points(hours: Sequence[float], values: Sequence[float]) -> Points:
    return list(zip(hours, values, strict=True))


def _placed(chart: str, row: int, lines: int) -> str:
    """A chart as a part of a drawing."""
    width = WIDTH + (LEGEND_WIDTH if lines > 1 else 0)
    place = f'<svg y="{row * HEIGHT}" width="{width}" height="{HEIGHT}" '
    return chart.replace("<svg ", place, 1)
