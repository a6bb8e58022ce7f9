"""What the score plugins of a profile made of the feasible nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from moorage.framework.interface.extension_points import Scores


class ScoreTable:
    """What each plugin made of each node: normalised and weighted. Arrays have shape (nodes,).

    They are to be read before the next pod's turn: `by_plugin` is worked out when it is, and both may be
    what is remembered for the pods that come next.
    """

    def __init__(self, totals: Scores, by_plugin: Callable[[], dict[str, Scores]] = dict) -> None:
        self.totals = totals
        self._by_plugin = by_plugin

    @cached_property
    def by_plugin(self) -> dict[str, Scores]:
        """Each plugin's part of the totals."""
        return self._by_plugin()
