"""What the page shows: the contract of all sources."""

from __future__ import annotations

from typing import Protocol

from moorage.services.responses import Handler
from moorage.ui.documents import SourceInfo
from moorage.ui.timeline import Timeline


class Source(Protocol):
    """Nodes and pods over time, and what else can be asked about them."""

    @property
    def timeline(self) -> Timeline:
        """The state and its changes."""

    def info(self) -> SourceInfo:
        """What this is."""

    def routes(self) -> dict[str, Handler]:
        """The documents of its features, by path below `/api/v1/`."""

    async def run(self) -> None:
        """Keep the timeline up to date until cancelled; a file is read before, and this returns."""
