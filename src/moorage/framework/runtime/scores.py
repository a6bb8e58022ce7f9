"""The scores of the feasible nodes by the score plugins of a profile."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from moorage.framework.interface.extension_points import Scores


class ScoreTable:
    """Each plugin's scores of each node, normalised and weighted. Arrays have shape (nodes,).

    They must be read before the next pod's cycle: `by_plugin` is computed when it is read, and both may be
    arrays of the result cache.
    """

    def __init__(self, totals: Scores, by_plugin: Callable[[], dict[str, Scores]] = dict) -> None:
        self.totals = totals
        self._by_plugin = by_plugin

    @cached_property
    def by_plugin(self) -> dict[str, Scores]:
        """Each plugin's part of the totals."""
        return self._by_plugin()
