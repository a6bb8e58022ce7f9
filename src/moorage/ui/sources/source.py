"""What the page shows: the contract of all sources."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from moorage.services.responses import Handler
from moorage.ui.documents import SourceInfo
from moorage.ui.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Feature:
    """Something that can be asked of a source: its name in `SourceInfo.features`, and its documents."""

    name: str
    routes: Mapping[str, Handler]
    """By path below `/api/v1/`."""
    work: Callable[[], Coroutine[Any, Any, None]] | None = None
    """What keeps the documents up to date, until it is cancelled."""


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
