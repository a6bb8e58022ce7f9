"""The metrics of FairShare: shares by owner, of a bounded number of owners."""

from __future__ import annotations

from typing import Final

from moorage import Handle

MAX_SHOWN: Final = 1_000
"""Number of owners whose shares are shown; of more, those that had pods first."""


class Gauges:
    """The share of each owner, while it is known."""

    def __init__(self, handle: Handle) -> None:
        has = "The largest share of any resource of the cluster that an owner's pods request."
        self._dominant = handle.metrics.gauge("moorage_fair_share_dominant_share", has, ("owner",))
        sorted_by = "The share that an owner is sorted by: with past use, and divided by the owner's weight."
        self._weighted = handle.metrics.gauge("moorage_fair_share_weighted_share", sorted_by, ("owner",))
        self._shown: set[str] = set()

    def show(self, owner: str, dominant: float, weighted: float) -> None:
        """Show the shares of an owner, if there is room."""
        if owner in self._shown or len(self._shown) < MAX_SHOWN:
            self._shown.add(owner)
            self._dominant.labels(owner).set(dominant)
            self._weighted.labels(owner).set(weighted)

    def remove(self, owner: str) -> None:
        """Show an owner no more, because it has nothing any more."""
        if owner in self._shown:
            self._shown.remove(owner)
            self._dominant.remove(owner)
            self._weighted.remove(owner)
