"""Candidates: the devices of a block that an alternative may get, as far as other devices do not matter.

They depend on the state of the block alone: on its devices and what is allocated of them. So they are kept
from one search to the next. Devices are evaluated when a search first gets to them, as a selector that fails
for a device fails the search.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final
from weakref import WeakKeyDictionary

from moorage.plugins.dynamic_resources.structured.constraints import attribute_of
from moorage.plugins.dynamic_resources.structured.device_blocks import Block
from moorage.plugins.dynamic_resources.structured.pools import PoolShape

UNKNOWN: Final = 0
CANDIDATE: Final = 1
REJECTED: Final = 2


class BlockCandidates:
    """What is known of the devices of blocks in one state."""

    __slots__ = ("_unknown_count", "_values", "complete", "verdicts")

    def __init__(self, size: int) -> None:
        self.verdicts = bytearray(size)
        """UNKNOWN, CANDIDATE or REJECTED for each device."""
        self.complete: list[int] | None = [] if not size else None
        """The places of all candidates, once all devices are evaluated."""
        self._unknown_count = size
        self._values: dict[str, frozenset[Hashable]] = {}

    def note(self, place: int, verdict: int) -> None:
        """Keep the verdict on a device that was not known."""
        self.verdicts[place] = verdict
        self._unknown_count -= 1
        if not self._unknown_count:
            self.complete = [place for place, each in enumerate(self.verdicts) if each == CANDIDATE]

    def has_value(self, block: Block, name: str, value: Hashable) -> bool:
        """Whether some candidate may have a value of an attribute."""
        if self.complete is None:
            return True
        values = self._values.get(name)
        if values is None:
            values = frozenset(attribute_of(block.entries[place], name) for place in self.complete)
            self._values[name] = values
        return value in values


class Candidates:
    """The candidates for the alternatives of some claims, by the state of a block."""

    def __init__(self) -> None:
        self._by_alternative: dict[Hashable, WeakKeyDictionary[PoolShape, BlockCandidates]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_alternative.values()))

    def of(self, alternative: Hashable, state: PoolShape, block: Block) -> BlockCandidates:
        """The candidates of a block for an alternative, which is given by its place in the claims."""
        by_state = self._by_alternative.get(alternative)
        if by_state is None:
            by_state = self._by_alternative[alternative] = WeakKeyDictionary()
        known = by_state.get(state)
        if known is None:
            known = by_state[state] = BlockCandidates(len(block.entries))
        return known
