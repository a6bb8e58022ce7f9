"""What all files have in common: everything is known, and nothing changes any more."""

from __future__ import annotations

from typing import Final

from moorage.services.responses import Handler
from moorage.ui.documents import SourceInfo
from moorage.ui.sources.source import Feature
from moorage.ui.timeline import Timeline
from moorage.version import __version__

MAX_CHANGES: Final = 500_000
"""Number of changed objects of a file that are kept; of longer ones, the last."""


class FileSource:
    """Nodes and pods over the time of a file: a timeline that is filled as it is read."""

    def __init__(self, kind: str, title: str, max_changes: int = MAX_CHANGES) -> None:
        self._kind = kind
        self._title = title
        self._features: list[Feature] = []
        self._problems: list[str] = []
        self.timeline = Timeline(lambda: 0.0, max_changes)

    def add(self, feature: Feature) -> None:
        """Let something more be asked; before the page is served."""
        self._features.append(feature)

    def note(self, problem: str) -> None:
        """Say what of the file is not shown, or is not as it should be."""
        self._problems.append(problem)

    def info(self) -> SourceInfo:
        """What this is."""
        return SourceInfo(
            kind=self._kind,
            title=self._title,
            live=False,
            features=("history", *(each.name for each in self._features)),
            version=__version__,
            problems=(*self._problems, *self._left_out()),
        )

    def _left_out(self) -> tuple[str, ...]:
        first = self.timeline.history().base.revision
        return (f"The first {first:,} changes are not shown: the file has too many.",) if first else ()

    def routes(self) -> dict[str, Handler]:
        """The documents of its features."""
        return {path: handler for each in self._features for path, handler in each.routes.items()}

    async def run(self) -> None:
        """There is nothing to follow."""
