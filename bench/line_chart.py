"""A line chart as SVG text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

WIDTH, HEIGHT, MARGIN = 800, 400, 60
TICKS = 5


def line_chart(points: Sequence[tuple[float, float]], x_label: str, y_label: str) -> str:
    """One line through all points; both axes begin at zero."""
    most_x = max(x for x, _ in points) or 1
    most_y = max(y for _, y in points) * 1.1 or 1

    def across(x: float) -> float:
        return MARGIN + x / most_x * (WIDTH - 2 * MARGIN)

    def down(y: float) -> float:
        return HEIGHT - MARGIN - y / most_y * (HEIGHT - 2 * MARGIN)

    line = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *_grid([(down(value), f"{value:.0f}") for value in _ticks(most_y)]),
        *(_text(across(value), HEIGHT - MARGIN + 20, f"{value:.0f}", "middle") for value in _ticks(most_x)),
        f'<polyline points="{line}" fill="none" stroke="#326ce5" stroke-width="1.5"/>',
        _text(WIDTH / 2, HEIGHT - 15, x_label, "middle"),
        _text(MARGIN, MARGIN - 20, y_label, "start"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _ticks(most: float) -> list[float]:
    return [most * at / TICKS for at in range(TICKS + 1)]


def _grid(rows: list[tuple[float, str]]) -> Iterator[str]:
    for y, label in rows:
        yield f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield _text(MARGIN - 8, y + 4, label, "end")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
