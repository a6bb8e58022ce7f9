"""How full nodes are over time: a map with a row for each node, or for some, and a column for each span."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage.simulation.records import NodeRecord, PodRecord

_MAX_ROWS: Final = 100
_COLUMNS: Final = 120
_ROW_HEIGHT, _COLUMN_WIDTH, _LABEL_WIDTH = 8, 6, 180
_SHADES: Final = 20
"""Number of colours, from empty to full."""


class NodeMap(NamedTuple):
    """The share of cpu that is requested."""

    labels: list[str]
    """The node of each row; of several, the first and the last."""
    shares: NDArray[np.float64]
    """By row and column; negative where there is no node."""


def node_map(nodes: Sequence[NodeRecord], pods: Sequence[PodRecord], seconds: float) -> NodeMap:
    """How full nodes are, from what was recorded of them and of pods in a number of seconds."""
    names = list(dict.fromkeys(node.name for node in nodes))
    index = {name: row for row, name in enumerate(names)}
    spans = [(index[node.name], node.cpu_milli, node.added_at, node.removed_at) for node in nodes]
    allocatable = _by_time(spans, len(names), seconds)
    bound = [
        (index[pod.node], pod.cpu_milli, pod.bound_at, pod.ended_at)
        for pod in pods
        if pod.bound_at is not None and pod.node in index
    ]
    requested = _by_time(bound, len(names), seconds)
    size = -(-len(names) // _MAX_ROWS) or 1
    firsts = np.arange(0, len(names), size)
    requested, allocatable = (np.add.reduceat(each, firsts) for each in (requested, allocatable))
    shares = np.where(allocatable > 0, requested / np.maximum(allocatable, 1e-9), -1.0)
    groups = [names[first : first + size] for first in firsts.tolist()]
    return NodeMap([_label(group) for group in groups], shares)


def _label(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def _by_time(
    spans: Sequence[tuple[int, int, float, float | None]], rows: int, seconds: float
) -> NDArray[np.float64]:
    """Amounts over time, by row and column: each is in a row from a time to another; None: to the end."""
    means = np.zeros((rows, _COLUMNS + 1))
    if not spans or not seconds:
        return means[:, :_COLUMNS]
    row = np.array([each[0] for each in spans], np.intp)
    amount = np.array([each[1] for each in spans], float)
    begin = np.array([each[2] for each in spans], float)
    end = np.array([seconds if each[3] is None else each[3] for each in spans], float)
    scale = _COLUMNS / seconds
    begin, end = begin * scale, end * scale
    first, last = np.minimum(begin.astype(np.intp), _COLUMNS), np.minimum(end.astype(np.intp), _COLUMNS)
    whole = np.zeros((rows, _COLUMNS + 2))
    # The columns in between are whole; of the first and the last, only a part.
    np.add.at(whole, (row, first), amount)
    np.add.at(whole, (row, last), -amount)
    np.add.at(means, (row, first), -amount * (begin - first))
    np.add.at(means, (row, last), amount * (end - last))
    means += np.cumsum(whole, axis=1)[:, : _COLUMNS + 1]
    return means[:, :_COLUMNS]


def svg_of(drawn: NodeMap) -> str:
    """The map as SVG."""
    width = _LABEL_WIDTH + _COLUMNS * _COLUMN_WIDTH
    height = len(drawn.labels) * _ROW_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif"'
        ' font-size="8">',
        *(part for row in range(len(drawn.labels)) for part in _row(drawn, row)),
        "</svg>",
    ]
    return "\n".join(parts)


def _row(drawn: NodeMap, row: int) -> Iterator[str]:
    """The label of a row, and a rectangle for each run of columns of one colour."""
    y = row * _ROW_HEIGHT
    yield f'<text x="0" y="{y + _ROW_HEIGHT - 1}" fill="currentColor">{escape(drawn.labels[row])}</text>'
    shades = [_shade(share) for share in drawn.shares[row].tolist()]
    begin = 0
    for column in range(1, _COLUMNS + 1):
        if column == _COLUMNS or shades[column] != shades[begin]:
            x, wide = _LABEL_WIDTH + begin * _COLUMN_WIDTH, (column - begin) * _COLUMN_WIDTH
            if shades[begin]:
                place = f'x="{x}" y="{y}" width="{wide}" height="{_ROW_HEIGHT - 1}"'
                yield f'<rect {place} fill="{shades[begin]}"/>'
            begin = column


def _shade(share: float) -> str:
    """A colour from light to dark blue; none where there is no node."""
    if share < 0:
        return ""
    level = min(round(share * _SHADES), _SHADES) / _SHADES
    red, green, blue = (
        round(light + (dark - light) * level) for light, dark in ((222, 8), (235, 48), (247, 107))
    )
    return f"#{red:02x}{green:02x}{blue:02x}"
