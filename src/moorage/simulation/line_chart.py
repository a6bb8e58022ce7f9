"""A line chart as SVG text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

WIDTH, HEIGHT, MARGIN = 800, 400, 60
TICKS = 5
WHOLE_FROM = 20
"""The length of an axis from which on its numbers are whole."""
LEGEND_WIDTH, LEGEND_ROW = 380, 18
COLOURS = ("#326ce5", "#d6461f", "#1f8a4c", "#8e44ad", "#b8860b", "#008b8b", "#c2185b", "#555555")

Points = Sequence[tuple[float, float]]


def line_chart(lines: Mapping[str, Points], x_label: str, y_label: str) -> str:
    """A line through the points of each name; both axes begin at zero.

    A single line needs no name; with several there is a legend.
    """
    points = [point for each in lines.values() for point in each]
    most_x = max(x for x, _ in points) or 1
    most_y = max(y for _, y in points) * 1.1 or 1
    width = WIDTH + (LEGEND_WIDTH if len(lines) > 1 else 0)
    height = max(HEIGHT, 2 * MARGIN + LEGEND_ROW * len(lines)) if len(lines) > 1 else HEIGHT

    def across(x: float) -> float:
        return MARGIN + x / most_x * (WIDTH - 2 * MARGIN)

    def down(y: float) -> float:
        return height - MARGIN - y / most_y * (height - 2 * MARGIN)

    def line(points: Points, colour: str, dashes: str) -> str:
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in points)
        return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}/>'

    styles = [
        (COLOURS[at % len(COLOURS)], ' stroke-dasharray="6 3"' if at >= len(COLOURS) else "")
        for at in range(len(lines))
    ]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *_grid([(down(value), _number(value, most_y)) for value in _ticks(most_y)]),
        *(
            svg_text(across(value), height - MARGIN + 20, _number(value, most_x), "middle")
            for value in _ticks(most_x)
        ),
        *(line(each, *style) for each, style in zip(lines.values(), styles, strict=True)),
        *_legend(lines, styles),
        svg_text(WIDTH / 2, height - 15, x_label, "middle"),
        svg_text(MARGIN, MARGIN - 20, y_label, "start"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _ticks(most: float) -> list[float]:
    return [most * at / TICKS for at in range(TICKS + 1)]


def _number(value: float, most: float) -> str:
    """A number on an axis, with a decimal where neighbours would look alike."""
    return f"{value:.0f}" if most >= WHOLE_FROM else f"{value:.1f}"


def _grid(rows: list[tuple[float, str]]) -> Iterator[str]:
    for y, label in rows:
        yield f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield svg_text(MARGIN - 8, y + 4, label, "end")


def _legend(names: Mapping[str, Points], styles: Sequence[tuple[str, str]]) -> Iterator[str]:
    if len(names) < 2:
        return
    for row, (name, (colour, dashes)) in enumerate(zip(names, styles, strict=True)):
        y = MARGIN + row * LEGEND_ROW
        ends = f'x1="{WIDTH - MARGIN + 20}" x2="{WIDTH - MARGIN + 45}" y1="{y}" y2="{y}"'
        yield f'<line {ends} stroke="{colour}" stroke-width="1.5"{dashes}/>'
        yield svg_text(WIDTH - MARGIN + 50, y + 4, name, "start")


def svg_text(x: float, y: float, text: str, anchor: str) -> str:
    """A text in a drawing."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
