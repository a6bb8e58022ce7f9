"""Checks of one device, apart from what a search has taken: they depend on allocations to claims alone."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api.quantity import Quantity
from moorage.cel.budget import WorkBudget
from moorage.plugins.dynamic_resources.structured.allocated_devices import AllocatedDevices, Amounts
from moorage.plugins.dynamic_resources.structured.claim_requests import (
    AllocationError,
    Alternative,
    ClaimRequest,
)
from moorage.plugins.dynamic_resources.structured.consumable_capacity import (
    InvalidAmountError,
    check_amounts,
    fits,
)
from moorage.plugins.dynamic_resources.structured.device_blocks import Block
from moorage.plugins.dynamic_resources.structured.device_kinds import Reading
from moorage.plugins.dynamic_resources.structured.device_rules import DeviceRules
from moorage.plugins.dynamic_resources.structured.pools import DeviceEntry
from moorage.plugins.dynamic_resources.structured.shared_counters import Counters

CAPACITY_WORK = 8
"""Work of checking a capacity of a device."""

_NOTHING: Amounts = {}


class DeviceChecks:
    """Whether devices can be allocated."""

    def __init__(
        self,
        allocated: AllocatedDevices,
        counters: Counters,
        work: WorkBudget,
        reading: Reading,
        rules: DeviceRules,
    ) -> None:
        self._allocated = allocated
        self._counters = counters
        self._work = work
        self._reading = reading
        self._rules = rules

    def is_candidate(
        self, claim_request: ClaimRequest, alternative: Alternative, block: Block, place: int
    ) -> bool:
        """Whether a device can be taken by a search that takes no other one."""
        entry = block.entries[place]
        held = self._allocated.of(entry.id)
        if not alternative.admin and held is not None and held.exclusive:
            return False
        if not self._suits(alternative, entry, block.reachable[place]):
            return False
        self._check_amounts(claim_request, alternative, entry, entry.id)
        if not self.has_capacity(alternative, entry) or not alternative.tolerates(entry.device.taints):
            return False
        return (
            not entry.device.consumes_counters
            or self.is_shared(entry)
            or self._counters.has_room(block.view_of[place], entry)
        )

    def is_one_of_all(
        self, claim_request: ClaimRequest, alternative: Alternative, entry: DeviceEntry, is_reachable: bool
    ) -> bool:
        """Whether a request for all devices includes one; the request fails if that is in use."""
        if not self._suits(alternative, entry, is_reachable):
            return False
        self._check_amounts(claim_request, alternative, entry, entry.id.device)
        if self._rules.all_devices_need_room:
            return fits(entry.device.capacity, alternative.capacity)
        return self.has_capacity(alternative, entry)

    def has_capacity(
        self, alternative: Alternative, entry: DeviceEntry, shares: Sequence[dict[str, Quantity]] = ()
    ) -> bool:
        """Whether a device has the capacity that an alternative takes; `shares` are taken as well."""
        held = self._allocated.of(entry.id)
        taken = held.capacity if held is not None and held.measured else _NOTHING
        if not (alternative.capacity or taken or shares):
            return entry.kind.has_default_capacity
        self._work.spend(len(entry.device.capacity) * CAPACITY_WORK)
        return fits(entry.device.capacity, alternative.capacity, taken, *shares)

    def is_shared(self, entry: DeviceEntry) -> bool:
        """Whether some share of a device is allocated, which has what it consumes of shared counters."""
        held = self._allocated.of(entry.id)
        if held is None or not entry.device.allow_multiple_allocations:
            return False
        return (held.shares if self._rules.unmeasured_shares_count else held.measured) > 0

    def _suits(self, alternative: Alternative, entry: DeviceEntry, is_reachable: bool) -> bool:
        """Whether the selectors match a device, and the node reaches it."""
        return alternative.accepts(entry, self._work, self._reading, self._rules) and is_reachable

    def _check_amounts(
        self, claim_request: ClaimRequest, alternative: Alternative, entry: DeviceEntry, device: object
    ) -> None:
        """Raise AllocationError if a request takes an amount that cannot be represented."""
        if not self._rules.unrepresentable_amounts_abort or not alternative.capacity:
            return
        try:
            check_amounts(entry.device.capacity, alternative.capacity)
        except InvalidAmountError as error:
            raise AllocationError(
                f"claim {claim_request.claim.key}, request {alternative.own_name}: "
                f"checking capacity for device {device}: {error}"
            ) from None
