"""The devices and capacities that are allocated to claims.

Updated by the changes of the table of claims, so that the cost of a cycle depends on what changed.
Claims whose allocation is decided but not written yet count as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from moorage.api.devices import DeviceRequestAllocationResult, ResourceClaim
from moorage.cel.budget import WorkBudget
from moorage.cel.reads import AttributesRead
from moorage.cluster.object_tables import ObjectTable
from moorage.cluster.table_reader import TableReader
from moorage.plugins.dynamic_resources.structured.device_blocks import Block
from moorage.plugins.dynamic_resources.structured.device_kinds import Reading
from moorage.plugins.dynamic_resources.structured.pools import (
    MAX_PROJECTIONS,
    DeviceId,
    PoolId,
    PoolShape,
    PoolShapes,
    View,
)

Amounts = dict[str, int]

_MIN_POOLS = 256


class DeviceAllocation:
    """How one device is allocated."""

    __slots__ = ("capacity", "exclusive", "measured", "shares")

    def __init__(self) -> None:
        self.exclusive = 0
        self.shares = 0
        self.measured = 0
        """Number of shares that consume an amount of the device's capacity."""
        self.capacity: Amounts = {}

    @property
    def free(self) -> bool:
        """Whether no claim has any of it."""
        return not (self.exclusive or self.shares)

    def state(self) -> tuple[Any, ...]:
        """All that a search can depend on."""
        taken = frozenset(self.capacity.items()) if self.measured else None
        return (self.exclusive > 0, self.shares > 0, taken)


_ClaimKey = tuple[str, str]


class _Change:
    """How many times more the devices of an allocation are allocated."""

    __slots__ = ("count", "results")

    def __init__(self, results: Sequence[DeviceRequestAllocationResult]) -> None:
        self.results = results
        self.count = 0


def _share(result: DeviceRequestAllocationResult) -> Hashable:
    """Which device an allocation has, or how much of it."""
    amounts = tuple(result.consumed_capacity.items()) if result.consumed_capacity else ()
    return result.driver, result.pool, result.device, result.share_id, amounts


class AllocatedDevices:
    """The allocated devices of all claims."""

    def __init__(self) -> None:
        self._claims: dict[_ClaimKey, ResourceClaim] = {}
        self._reader = TableReader()
        self._pools: dict[PoolId, dict[str, DeviceAllocation]] = {}
        self._pending: dict[str, ResourceClaim] = {}
        self._signatures: dict[PoolId, WeakKeyDictionary[View, Hashable]] = {}
        self.shapes = PoolShapes()
        self._block_states: WeakKeyDictionary[Block, dict[AttributesRead | None, PoolShape]] = (
            WeakKeyDictionary()
        )
        """The states of blocks, by the attributes that searches read; None: all of them."""
        self._blocks: dict[PoolId, WeakSet[Block]] = {}
        """The blocks whose states are kept, by their pools."""
        self._max_pools = _MIN_POOLS
        """Number of pools beyond which those that are gone are dropped."""
        self._changes: dict[tuple[Hashable, ...], _Change] = {}
        """Allocations that count since the last refresh, or no longer, by their devices and shares."""

    def refresh(
        self, table: ObjectTable[ResourceClaim], pending: Mapping[str, ResourceClaim]
    ) -> AbstractSet[PoolId]:
        """Apply changes; returns the pools whose allocations have changed.

        pending: claims with an allocation that is not written yet, by uid. Those that the table shows as
        allocated already are not counted twice.
        """
        keys = self._reader.changed_keys(table)
        if keys is None:
            keys = [*self._claims, *((claim.namespace, claim.name) for claim in table)]
        for key in keys:
            claim = table.get(*key)
            if claim is not self._claims.get(key):
                self._replace(key, claim)
        self._follow(pending)
        return self._apply()

    def _follow(self, pending: Mapping[str, ResourceClaim]) -> None:
        counted = {}
        for uid, claim in pending.items():
            shown = self._claims.get((claim.namespace, claim.name))
            if shown is None or shown.status.allocation is None:
                counted[uid] = claim
        for uid, claim in self._pending.items():
            if counted.get(uid) is not claim:
                self._count(claim, -1)
        for uid, claim in counted.items():
            if self._pending.get(uid) is not claim:
                self._count(claim, 1)
        self._pending = counted

    def _replace(self, key: _ClaimKey, claim: ResourceClaim | None) -> None:
        old = self._claims.pop(key, None)
        if old is not None:
            self._count(old, -1)
        if claim is not None:
            self._claims[key] = claim
            self._count(claim, 1)

    def _count(self, claim: ResourceClaim, sign: int) -> None:
        """Note that an allocation counts, or no longer; what one claim gives up another may take over."""
        if claim.status.allocation is None:
            return
        given = [each for each in claim.status.allocation.devices.results if not each.admin_access]
        devices = tuple([_share(each) for each in given])
        change = self._changes.get(devices)
        if change is None:
            change = self._changes[devices] = _Change(given)
        change.count += sign

    def _apply(self) -> AbstractSet[PoolId]:
        """Apply the changes noted since the last time; returns the pools whose allocations have changed.

        The claim that shows an allocation which was pending before changes nothing.
        """
        touched: set[PoolId] = set()
        for change in self._changes.values():
            for result in change.results if change.count else ():
                self._allocate(result, change.count)
                touched.add((result.driver, result.pool))
        self._changes.clear()
        for pool in touched:
            self._signatures.pop(pool, None)
            for block in self.blocks_with(pool):
                self._block_states.pop(block, None)
        return touched

    def _allocate(self, result: DeviceRequestAllocationResult, count: int) -> None:
        """Allocate a device, or a share of it, a number of times; less than 0: deallocate it."""
        pool = (result.driver, result.pool)
        devices = self._pools.setdefault(pool, {})
        held = devices.setdefault(result.device, DeviceAllocation())
        if result.share_id is None:
            held.exclusive += count
        else:
            held.shares += count
            held.measured += count * bool(result.consumed_capacity)
            for name, amount in result.consumed_capacity.items():
                held.capacity[name] = held.capacity.get(name, 0) + count * amount
        if held.free:
            del devices[result.device]
            if not devices:
                del self._pools[pool]

    # Reading

    def of(self, device: DeviceId) -> DeviceAllocation | None:
        """The allocation of a device, if there is one."""
        devices = self._pools.get((device.driver, device.pool))
        return None if devices is None else devices.get(device.device)

    def signature(self, view: View) -> Hashable:
        """The allocations of a pool, by the devices' places in a view: all that a search can depend on."""
        devices = self._pools.get(view.id)
        if not devices or not view.usable:
            return ()
        known = self._signatures.setdefault(view.id, WeakKeyDictionary())
        signature = known.get(view)
        if signature is None:
            places = view.positions
            taken = ((places[name], held.state()) for name, held in devices.items() if name in places)
            signature = known[view] = tuple(sorted(taken, key=lambda each: each[0]))
        return signature

    def blocks_with(self, pool: PoolId) -> Iterable[Block]:
        """The blocks with a pool whose state was asked for."""
        return self._blocks.get(pool, ())

    def state(self, block: Block) -> PoolShape:
        """The state of a block: the same object for blocks in which every search has the same result."""
        states = self._states_of(block)
        state = states.get(None)
        if state is None:
            parts = [(view.projection, self.signature(view)) for view in block.views]
            state = states[None] = self.shapes.one(tuple(parts))
        return state

    def state_for(self, block: Block, reading: Reading, work: WorkBudget) -> PoolShape:
        """The same, for searches whose selectors read only some attributes."""
        reads = reading.reads
        if reads is None:
            return self.state(block)
        states = self._states_of(block)
        state = states.get(reads)
        if state is None:
            parts = [(view.projection_for(reading, work), self.signature(view)) for view in block.views]
            if len(states) > MAX_PROJECTIONS:
                states.clear()
            state = states[reads] = self.shapes.one(tuple(parts))
        return state

    def _states_of(self, block: Block) -> dict[AttributesRead | None, PoolShape]:
        states = self._block_states.get(block)
        if states is None:
            states = self._block_states[block] = {}
            for view in block.views:
                self._blocks.setdefault(view.id, WeakSet()).add(block)
            if len(self._blocks) > self._max_pools:
                self._blocks = {pool: blocks for pool, blocks in self._blocks.items() if blocks}
                self._max_pools = _MIN_POOLS + 2 * len(self._blocks)
        return states

    def contents(self) -> dict[DeviceId, tuple[Any, ...]]:
        """All allocations: for comparing and for debugging."""
        return {
            DeviceId(*pool, name): held.state()
            for pool, devices in self._pools.items()
            for name, held in devices.items()
        }
