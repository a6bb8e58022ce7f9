"""Tables as kubectl prints them: columns of text, aligned, without lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_GAP: Final = "   "


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the last column is as wide as it likes."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return "\n".join(
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    )
