"""The share of each owner: the largest share of any resource that its pods have, divided by its weight."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from moorage import Handle, Pod, PodInfo
from moorage.optional_plugins.fair_share.arguments import FairShareArgs
from moorage.optional_plugins.fair_share.capacity import Capacity
from moorage.optional_plugins.fair_share.gauges import Gauges
from moorage.optional_plugins.fair_share.usage import Usage
from moorage.optional_plugins.fair_share.weights import Weights

_MAX_AGE_SECONDS: Final = 1.0
_MAX_AGE_OF_HALF_LIFE: Final = 1 / 64
"""How old a share may be before past use is computed again: within this, it fades by 1.1 % at most."""
_SHOWN_AFTER_SECONDS: Final = 1.0
"""Time after which a change is seen in metrics, in seconds."""
_MIN_SWEPT: Final = 256

OwnerOf = Callable[[Pod], str]


class Changes(NamedTuple):
    """What has changed of shares.

    owners: whose pods came or went. are_all: whether all shares may be others. has_room: whether pods left,
    or nodes have changed.
    """

    owners: Collection[str]
    are_all: bool
    has_room: bool


class Shares:
    """Follows pods, nodes and weights. Shares are as of the last call of `renew`."""

    def __init__(self, args: FairShareArgs, handle: Handle, owner_of: OwnerOf) -> None:
        self._handle = handle
        self._owner_of = owner_of
        self._half_life = float(args.half_life)
        self._max_age = min(_MAX_AGE_SECONDS, self._half_life * _MAX_AGE_OF_HALF_LIFE)
        self._weights = Weights(args, handle)
        self._capacity = Capacity(handle, args.resources)
        self._gauges = Gauges(handle)
        self.usage: dict[str, Usage] = {}
        """The owners that have something, or had it."""
        self._computed: dict[str, float] = {}
        """The shares that are known."""
        self._moved: dict[str, int] = {}
        """The owners whose pods came or went since the last call, and by how many they are more."""
        self._now = self._computed_at = handle.clock.now()
        self._to_show: set[str] = set()
        self._sweep_at = _MIN_SWEPT
        """Number of owners from which on those that are forgotten are looked for among all."""

    def pod_moved(self, info: PodInfo, count: int) -> None:
        """A pod came to a node (1), or left it (-1)."""
        owner, now = self._owner_of(info.pod), self._handle.clock.now()
        usage = self.usage.get(owner)
        if usage is None:
            usage = self.usage[owner] = Usage(now)
        usage.change(info.load.amounts, count, now, self._half_life)
        self._moved[owner] = self._moved.get(owner, 0) + count
        if not self._to_show:
            self._handle.clock.call_later(_SHOWN_AFTER_SECONDS, self._show)
        self._to_show.add(owner)

    def renew(self) -> Changes:
        """Bring all shares up to date; returns what has changed since the last call."""
        now = self._now = self._handle.clock.now()
        moved, self._moved = self._moved, {}
        for owner in moved:
            self._computed.pop(owner, None)
        has_faded = self._half_life > 0 and now - self._computed_at >= self._max_age
        has_capacity_changed = self._capacity.has_changed()
        are_all = self._weights.have_changed() or has_capacity_changed or has_faded
        if are_all:
            self._computed.clear()
            self._computed_at = now
        has_room = has_capacity_changed or (bool(moved) and min(moved.values()) < 0)
        return Changes(moved, are_all, has_room)

    def of(self, owner: str) -> float:
        """The share of an owner, by which it is sorted."""
        share = self._computed.get(owner)
        if share is None:
            usage = self.usage.get(owner)
            if usage is None:
                return 0.0
            share = self._computed[owner] = self._weighted(owner, usage, self._now)
        return share

    def _weighted(self, owner: str, usage: Usage, now: float) -> float:
        counted = usage.counted(now, self._half_life)
        return self._capacity.dominant_share(counted) / self._weights.of(owner)

    def _show(self) -> None:
        """Show what has changed in the metrics, and forget owners that have nothing."""
        owners, self._to_show = self._to_show, set()
        now = self._handle.clock.now()
        if len(self.usage) > self._sweep_at:
            owners = set(self.usage)
        for owner in owners:
            usage = self.usage[owner]
            if usage.is_nothing(now, self._half_life):
                self._forget(owner)
            else:
                dominant = self._capacity.dominant_share(usage.held)
                self._gauges.show(owner, dominant, self._weighted(owner, usage, now))
        self._sweep_at = max(self._sweep_at, 2 * len(self.usage))

    def _forget(self, owner: str) -> None:
        del self.usage[owner]
        self._computed.pop(owner, None)
        self._gauges.remove(owner)
