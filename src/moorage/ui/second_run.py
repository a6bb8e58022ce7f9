"""A second run beside the one that is shown, for comparing them."""

from __future__ import annotations

from typing import Final

from moorage.ui.application import timeline_routes
from moorage.ui.sources.source import Feature, Source

_PATH: Final = "runs/2/"


def second_run_feature(source: Source) -> Feature:
    """The documents of another source: those of every source, below `runs/2/`."""
    return Feature("compare", {_PATH + path: handler for path, handler in timeline_routes(source).items()})
