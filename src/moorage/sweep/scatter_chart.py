"""Rows of a sweep by two objectives, with the Pareto front, as SVG text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from moorage.simulation.line_chart import COLOURS, HEIGHT, MARGIN, TICKS, WIDTH, svg_text
from moorage.sweep.estimates import Estimate
from moorage.sweep.results import SweepRow
from moorage.sweep.tables import decimals_of, shown

_BEST_COLOUR, _OTHER_COLOUR = COLOURS[0], "#999999"
_RADIUS: Final = 4
_PADDING: Final = 0.08
"""Free space on both ends of an axis, as a share of its extent."""
_LABEL_OFFSET: Final = 8


class _Axis:
    """An axis from a bit below the least value to a bit above the greatest."""

    def __init__(self, estimates: Sequence[Estimate], start: float, end: float) -> None:
        least = min(each.low for each in estimates)
        greatest = max(each.high for each in estimates)
        free = _PADDING * (greatest - least) or abs(greatest) or 1.0
        self._least, self._extent = least - free, greatest - least + 2 * free
        self._start, self._end = start, end

    def place(self, value: float) -> float:
        """Where a value is."""
        return self._start + (value - self._least) / self._extent * (self._end - self._start)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Places and their values."""
        decimals = decimals_of(self._extent)
        for at in range(TICKS + 1):
            value = self._least + self._extent * at / TICKS
            yield self.place(value), f"{value:,.{decimals}f}"


Row = tuple[SweepRow, Estimate, Estimate]
"""A row, and its values on both axes."""


def scatter_chart(rows: Sequence[SweepRow], x_figure: str, y_figure: str) -> str:
    """A point for each row that has both figures; those on the front are numbered, in order of the table."""
    points = [
        (row, x, y)
        for row in rows
        if (x := row.estimates[x_figure]) is not None and (y := row.estimates[y_figure]) is not None
    ]
    if not points:
        return ""
    across = _Axis([x for _, x, _ in points], MARGIN, WIDTH - MARGIN)
    up = _Axis([y for _, _, y in points], HEIGHT - MARGIN, MARGIN)
    best = [each for each in points if each[0].best]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *_grid(across, up),
        _front(best, across, up),
        *(_point(each, across, up, _OTHER_COLOUR) for each in points if not each[0].best),
        *(_point(each, across, up, _BEST_COLOUR) for each in best),
        *_numbers(best, across, up),
        svg_text(WIDTH / 2, HEIGHT - 15, x_figure, "middle"),
        svg_text(MARGIN, MARGIN - 20, y_figure, "start"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _grid(across: _Axis, up: _Axis) -> Iterator[str]:
    for y, name in up.ticks():
        yield f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield svg_text(MARGIN - 8, y + 4, name, "end")
    for x, name in across.ticks():
        yield svg_text(x, HEIGHT - MARGIN + 20, name, "middle")


def _front(best: Sequence[Row], across: _Axis, up: _Axis) -> str:
    places = sorted((across.place(x.mean), up.place(y.mean)) for _, x, y in best)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return f'<polyline points="{path}" fill="none" stroke="{_BEST_COLOUR}" stroke-width="1"/>'


def _point(point: Row, across: _Axis, up: _Axis, colour: str) -> str:
    """A point with its confidence intervals; its name is shown where a pointer is over it."""
    row, x, y = point
    at_x, at_y = across.place(x.mean), up.place(y.mean)
    left, right = across.place(x.low), across.place(x.high)
    bottom, top = up.place(y.low), up.place(y.high)
    name = f"{row.label}, {row.kubernetes}: {shown(x)}, {shown(y)}"
    return (
        f'<g stroke="{colour}" stroke-opacity="0.5"><title>{escape(name)}</title>'
        f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{at_y:.1f}" y2="{at_y:.1f}"/>'
        f'<line x1="{at_x:.1f}" x2="{at_x:.1f}" y1="{bottom:.1f}" y2="{top:.1f}"/>'
        f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="{_RADIUS}" fill="{colour}"/></g>'
    )


def _numbers(best: Sequence[Row], across: _Axis, up: _Axis) -> Iterator[str]:
    for number, (_, x, y) in enumerate(best, 1):
        place = across.place(x.mean) + _LABEL_OFFSET, up.place(y.mean) - _LABEL_OFFSET
        yield svg_text(*place, str(number), "start")
