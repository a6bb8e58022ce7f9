"""The live table of shadow mode."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Final

from moorage.cli.aligned_table import aligned
from moorage.scheduler.shadow.report import ShadowStatus, report_rows

_MAX_ROWS: Final = 20
_CLEAR: Final = "\x1b[H\x1b[2J"
"""Moves a terminal's cursor to the top and clears the screen."""


def shadow_lines(status: ShadowStatus, max_rows: int = _MAX_ROWS) -> Iterator[str]:
    """The counts as text: by profile, by template, and the plugins that explain differences."""
    rows = list(report_rows(status))
    if not rows:
        yield "no pod has been bound by another scheduler yet"
        return
    yield aligned(("", "NAME", "SAME", "TIE", "DIFFERENT", "AGREED"), rows[:max_rows])
    if len(rows) > max_rows:
        yield f"... and {len(rows) - max_rows} more templates"
    if status.plugins or status.unexplained:
        plugins = [(name, str(count)) for name, count in status.plugins.items()]
        if status.unexplained:
            plugins.append(("(none alone)", str(status.unexplained)))
        yield ""
        yield aligned(("EXPLAINED BY", "DIFFERENCES"), plugins)


def shown_on_terminal() -> Callable[[ShadowStatus, bool], None]:
    """A function that shows the counts: on a terminal in place whenever they change, else once at the end."""
    last: ShadowStatus | None = None

    def show(status: ShadowStatus, is_final: bool) -> None:
        nonlocal last
        is_live = sys.stdout.isatty()
        if is_final if not is_live else status != last:
            sys.stdout.write((_CLEAR if is_live else "") + "\n".join(shadow_lines(status)) + "\n")
            sys.stdout.flush()
        last = status

    return show
