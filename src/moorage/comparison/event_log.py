"""Where two runs begin to differ."""

from __future__ import annotations

from array import array
from collections.abc import Sequence


class EventLog:
    """What happens in a run, in order; only a hash of each event is kept."""

    def __init__(self) -> None:
        self.hashes: Sequence[int] = array("q")

    def note(self, *event: object) -> None:
        """Something happened."""
        assert isinstance(self.hashes, array)
        self.hashes.append(hash(event))


class FollowedLog(EventLog):
    """What happens in another run, up to the first event that is not that of the first run."""

    def __init__(self, first: EventLog) -> None:
        super().__init__()
        self.hashes = first.hashes
        self._count = 0
        self.is_same = True
        """Whether all events so far were the same."""

    def note(self, *event: object) -> None:
        """Something happened."""
        if self.is_same:
            at = self._count
            self.is_same = at < len(self.hashes) and self.hashes[at] == hash(event)
            self._count += 1
