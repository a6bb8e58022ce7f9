"""Blocks of devices: the pools that a node sees, some at a time.

Where devices are attached to a network, every node sees the same thousands of pools, of which an allocation
changes one. What is derived from pools is kept by block, shared by all nodes that see the block, and
computed again for the block that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from weakref import WeakValueDictionary

from moorage.plugins.dynamic_resources.structured.pools import DeviceEntry, PoolId, View

MAX_POOLS = 32
"""Maximum number of pools in a block."""


class Block:
    """Consecutive pools as some nodes see them: one narrow pool, or several wide ones."""

    __slots__ = ("__weakref__", "entries", "is_wide", "reachable", "view_of", "views")

    def __init__(self, views: tuple[View, ...], *, is_wide: bool) -> None:
        self.views = views
        self.is_wide = is_wide
        usable = [view for view in views if view.usable]
        self.entries: list[DeviceEntry] = [entry for view in usable for entry in view.entries]
        """The devices that may be allocated, if the nodes reach them."""
        self.reachable: list[bool] = [flag for view in usable for flag in view.reachable]
        """Whether the nodes reach each of the entries."""
        self.view_of: list[View] = [view for view in usable for _ in view.entries]
        """The view that each of the entries is from."""


class Blocks:
    """One object for each block that some node sees."""

    def __init__(self, is_wide: Callable[[PoolId], bool]) -> None:
        self._is_wide = is_wide
        self._known: WeakValueDictionary[tuple[View, ...], Block] = WeakValueDictionary()

    def of(self, views: Sequence[View]) -> Iterator[Block]:
        """The blocks of a node's views."""
        for is_wide, some in groupby(views, lambda view: self._is_wide(view.id)):
            run, size = tuple(some), MAX_POOLS if is_wide else 1
            for start in range(0, len(run), size):
                part = run[start : start + size]
                block = self._known.get(part)
                if block is None:
                    block = self._known[part] = Block(part, is_wide=is_wide)
                yield block
