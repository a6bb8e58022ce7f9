"""The device state of every node, as a column: nodes with equal states get the same devices, place by place.

A device state is the pools that a node sees, and what is allocated of them. It is computed in two steps, so
that each change costs no more than what it concerns:

    row ──► local state ──► device state
            narrow pools with what is allocated,      the same, with what is
            wide pools by name                        allocated of wide pools

When devices of a narrow pool are allocated, the rows of the nodes that it names get another local state. A
wide pool is seen by many nodes with few local states: only those get another device state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from moorage.api.devices import DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.cluster.columns import CodeColumn, Column
from moorage.cluster.object_tables import Objects
from moorage.cluster.row_reader import RowReader
from moorage.cluster.snapshot import Snapshot
from moorage.framework.interface.nodes import Nodes
from moorage.plugins.dynamic_resources.structured.allocated_devices import AllocatedDevices
from moorage.plugins.dynamic_resources.structured.device_blocks import Block
from moorage.plugins.dynamic_resources.structured.device_rules import OLDER_RULES, DeviceRules
from moorage.plugins.dynamic_resources.structured.inventory import Inventory
from moorage.plugins.dynamic_resources.structured.pools import PoolId, PoolShape

_LocalState = tuple[PoolShape | Block, ...]
"""The states of blocks of narrow pools, and blocks of wide ones, in the order in which devices are tried."""

_DeviceState = tuple[PoolShape, ...]


class NodeDeviceStates:
    """The device states of the rows of one snapshot after the other.

    Invariant: rows with equal codes see pools in which every search has the same result.
    """

    def __init__(self, rules: DeviceRules = OLDER_RULES) -> None:
        self._rules = rules
        self.inventory = Inventory(rules)
        self.allocated = AllocatedDevices()
        self._reader = RowReader()
        self._concerned: set[str] | None = None
        """The nodes whose rows may be out of date; None: all of them."""
        self._touched: set[PoolId] = set()
        """The pools whose allocations may have changed since the rows were computed."""
        self._local_states: CodeColumn[_LocalState] = CodeColumn()
        self._device_states: CodeColumn[_DeviceState] = CodeColumn()
        """The device state of each local state, by the local state's code."""
        self._settled: list[_LocalState | None] = []
        """The local state that the device state is for, by its code: codes are used again."""
        self._serials = Column(np.int64)
        self._numbered: list[_DeviceState | None] = []
        """The device state that each serial number is for, by the state's code."""
        self._last_serial = 0
        self._local_states_of_block: dict[Block, set[int]] = {}
        """The local states with each block of wide pools, by their codes."""

    def refresh(self, objects: Objects, pending: Mapping[str, ResourceClaim]) -> None:
        """Apply changes of slices and claims; `pending` are those with an unwritten allocation."""
        taint_rules = objects.of(DeviceTaintRule) if self._rules.device_taint_rules_count else None
        concerned = self.inventory.refresh(objects.of(ResourceSlice), taint_rules)
        if self._concerned is not None:
            self._concerned |= concerned
        self._touched |= self.allocated.refresh(objects.of(ResourceClaim), pending)

    def of(self, nodes: Nodes) -> NDArray[np.int32]:
        """The code of each node's device state, below `len(self)`. Shape (nodes,)."""
        self._catch_up(nodes.snapshot)
        codes: NDArray[np.int32] = self._device_states.codes[nodes.pick(self._local_states.codes)]
        return codes

    def __len__(self) -> int:
        """How many codes there are: the size of a table by device state."""
        return len(self._device_states.vocabulary)

    @property
    def serials(self) -> NDArray[np.int64]:
        """The serial number of each code's device state; codes are reused, serial numbers are not."""
        return self._serials.values

    # Updating

    def _catch_up(self, snapshot: Snapshot) -> None:
        rows = self._reader.new_rows(snapshot, snapshot.node_changes)
        concerned, self._concerned = self._concerned, None  # after a failure, the next call rebuilds all
        if rows is None or concerned is None:
            self._rebuild(snapshot)
        else:
            narrow = [pool for pool in self._touched if not self.inventory.is_wide(pool)]
            names = concerned.union(*map(self.inventory.named_by, narrow))
            known = (snapshot.row_of[name] for name in names if name in snapshot.row_of)
            self._update_rows(snapshot, {*rows, *known})
            blocks = {block for pool in self._touched for block in self.allocated.blocks_with(pool)}
            for code in set().union(*[self._local_states_of_block.get(block, ()) for block in blocks]):
                self._settle(code)
        self._concerned = set()
        self._touched.clear()

    def _rebuild(self, snapshot: Snapshot) -> None:
        self.inventory.forget_all_but(snapshot.row_of)
        self._local_states, self._device_states = CodeColumn(), CodeColumn()
        self._settled.clear()
        self._serials = Column(np.int64)
        self._numbered.clear()
        self._local_states_of_block.clear()
        for _ in range(len(snapshot)):
            self._local_states.append()
        self._update_rows(snapshot, range(len(snapshot)))

    def _update_rows(self, snapshot: Snapshot, rows: Iterable[int]) -> None:
        """Compute the local states of rows, and the device states of new local states."""
        local_states = self._local_states
        for row in rows:
            blocks = self.inventory.seen_from(snapshot.nodes[row]).blocks
            local_states[row] = tuple(
                [each if each.is_wide else self.allocated.state(each) for each in blocks]
            )
            code = int(local_states.codes[row])
            if code == len(self._settled):
                self._settled.append(None)
                self._device_states.append()
            if self._settled[code] is not local_states.vocabulary.values[code]:
                self._settle(code)

    def _settle(self, code: int) -> None:
        """Compute the device state of a local state, or drop it if no row has it any more."""
        local_state = self._local_states.vocabulary.values[code]
        for block in _wide_blocks(self._settled[code]):
            codes = self._local_states_of_block[block]
            codes.discard(code)
            if not codes:
                del self._local_states_of_block[block]
        for block in _wide_blocks(local_state):
            self._local_states_of_block.setdefault(block, set()).add(code)
        self._settled[code] = local_state
        if local_state is None:
            self._device_states[code] = None
        else:
            self._device_states[code] = tuple(
                [self.allocated.state(each) if isinstance(each, Block) else each for each in local_state]
            )
            self._number(int(self._device_states.codes[code]))

    def _number(self, code: int) -> None:
        """Give a new device state a serial number."""
        device_state = self._device_states.vocabulary.values[code]
        if code == len(self._numbered):
            self._numbered.append(None)
            self._serials.append(0)
        if self._numbered[code] is not device_state:
            self._last_serial += 1
            self._numbered[code], self._serials[code] = device_state, self._last_serial


def _wide_blocks(local_state: _LocalState | None) -> list[Block]:
    return [part for part in local_state or () if isinstance(part, Block)]
