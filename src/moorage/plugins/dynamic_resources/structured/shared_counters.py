"""Counters that the partitions of a device share: what is left of them during a search."""

from __future__ import annotations

from moorage.plugins.dynamic_resources.structured.allocated_devices import AllocatedDevices
from moorage.plugins.dynamic_resources.structured.pools import (
    CounterAmounts,
    DeviceEntry,
    PoolId,
    View,
    consumption,
)


class Counters:
    """What is left of each pool's counters, with what the search has taken so far."""

    def __init__(self, allocated: AllocatedDevices) -> None:
        self._allocated = allocated
        self._free: dict[PoolId, CounterAmounts] = {}
        """What is left without what the search has taken."""
        self._left: dict[PoolId, CounterAmounts] = {}

    def take(self, view: View, entry: DeviceEntry) -> bool:
        """Take what a device consumes, if there is enough of it.

        Where more than the pool's counters is consumed, nothing more can be taken.
        """
        left = self._left.get(view.id)
        if left is None:
            left = self._left[view.id] = dict(self._free_in(view))
        wanted = consumption(entry.device)
        if not _has_room(left, wanted):
            return False
        for key, amount in wanted.items():
            left[key] -= amount
        return True

    def has_room(self, view: View, entry: DeviceEntry) -> bool:
        """Whether there is enough for a device, if the search takes no other one."""
        return _has_room(self._free_in(view), consumption(entry.device))

    def give_back(self, view: View, entry: DeviceEntry) -> None:
        """Undo `take`."""
        left = self._left[view.id]
        for key, amount in consumption(entry.device).items():
            left[key] += amount

    def _free_in(self, view: View) -> CounterAmounts:
        free = self._free.get(view.id)
        if free is None:
            free = self._free[view.id] = dict(view.counters or {})
            for entry in (*view.entries, *view.others):
                if entry.device.consumes_counters and self._allocated.of(entry.id) is not None:
                    for key, amount in consumption(entry.device).items():
                        free[key] -= amount
        return free


def _has_room(left: CounterAmounts, wanted: CounterAmounts) -> bool:
    return all(amount >= 0 for amount in left.values()) and all(
        amount <= left[key] for key, amount in wanted.items()
    )
