"""Everything drivers publish, kept up to date: a change of slices rebuilds only the pools it touches.

A pool is narrow if all of its devices are for nodes that it names; wide pools may concern every node.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import chain

from moorage.api.devices import ResourceSlice
from moorage.api.node import Node
from moorage.cel.budget import WorkBudget
from moorage.cluster.object_tables import ObjectTable
from moorage.plugins.dynamic_resources.structured.constraints import equality
from moorage.plugins.dynamic_resources.structured.device_kinds import DeviceKinds, Reading
from moorage.plugins.dynamic_resources.structured.pools import (
    MAX_PROJECTIONS,
    VIEW_WORK,
    DeviceEntry,
    DeviceId,
    Pool,
    PoolId,
    PoolShapes,
    Slice,
    View,
)


class NodeDevices:
    """All that one node sees, in the order in which devices are tried.

    Few nodes are ever searched: what only searches need is made on demand.
    """

    def __init__(self, views: Iterable[View]) -> None:
        self.views = sorted(views, key=lambda view: (view.after_others, view.id))
        self._equal_values: dict[tuple[str, ...], Hashable] = {}

    @property
    def device_state(self) -> Hashable:
        """The device state without allocations: searches on nodes with equal states have the same result."""
        return tuple(view.projection for view in self.views)

    def device_state_for(self, reading: Reading, work: WorkBudget) -> Hashable:
        """The same, for searches whose selectors read only some attributes."""
        return tuple([view.projection_for(reading, work) for view in self.views])

    def equal_values(self, names: tuple[str, ...], work: WorkBudget) -> Hashable:
        """Which devices have equal values of each of some attributes: all that constraints depend on."""
        if not names:
            return ()
        known = self._equal_values.get(names)
        if known is None:
            if len(self._equal_values) == MAX_PROJECTIONS:
                self._equal_values.clear()
            outlines = [(view.outline, view.id[0]) for view in self.views if view.outline is not None]
            work.spend(len(names) * sum(VIEW_WORK + 2 * len(view.entries) for view in self.views))
            known = tuple(
                [
                    equality(chain.from_iterable([each.values_of(name, driver) for each, driver in outlines]))
                    for name in names
                ]
            )
            self._equal_values[names] = known
        return known

    @cached_property
    def _usable(self) -> list[View]:
        return [view for view in self.views if view.usable]

    @cached_property
    def entries(self) -> list[DeviceEntry]:
        """The devices that may be allocated, if the node reaches them."""
        return [entry for view in self._usable for entry in view.entries]

    @cached_property
    def reachable(self) -> list[bool]:
        """Whether the node reaches each of the entries."""
        return [flag for view in self._usable for flag in view.reachable]

    @cached_property
    def view_of(self) -> list[View]:
        """The view that each of the entries is from."""
        return [view for view in self._usable for _ in view.entries]


class Inventory:
    """All pools, kept up to date with the slices there are."""

    def __init__(self) -> None:
        self.generation = 0
        """Incremented when pools change."""
        self._table: ObjectTable[ResourceSlice] | None = None
        self._version = -1
        self._slices: dict[str, Slice] = {}
        self._pools: dict[PoolId, Pool] = {}
        self._members: dict[PoolId, dict[str, Slice]] = {}
        self._of_node: dict[str, dict[PoolId, None]] = {}
        self._node_devices: dict[str, tuple[Node, NodeDevices]] = {}
        self._kinds = DeviceKinds()
        self._shapes = PoolShapes()
        self._wide: dict[PoolId, Pool] = {}
        self._bad: dict[PoolId, View] = {}
        """Invalid pools that also concern nodes without any of their devices."""

    def refresh(self, table: ObjectTable[ResourceSlice]) -> AbstractSet[str]:
        """Apply changes of the table of slices.

        Returns the names of the nodes whose devices may have changed since the last call.
        """
        if table is self._table and table.version == self._version:
            return frozenset()
        self._table, self._version = table, table.version
        changed: dict[PoolId, None] = {}
        for source in table:
            known = self._slices.get(source.name)
            if known is None or known.source is not source:
                self._drop(source.name, changed)
                self._add(source, changed)
        if len(self._slices) > len(table):
            for name in [name for name in self._slices if table.get("", name) is None]:
                self._drop(name, changed)
        return self._rebuild_all(changed)

    def _rebuild_all(self, changed: Iterable[PoolId]) -> AbstractSet[str]:
        names: set[str] = set()
        far: set[PoolId] = set()
        for identity in changed:
            before = self._pools.get(identity)
            for pool in (before, self._rebuild(identity)):
                if pool is not None:
                    names |= pool.node_names
                    if pool.wide or pool.seen_from_other_nodes is not None:
                        far.add(identity)
            self.generation += 1
        for name in names:
            self._node_devices.pop(name, None)
        return names | self._recheck_nodes(far) if far else names

    def _recheck_nodes(self, pools: AbstractSet[PoolId]) -> set[str]:
        """Update the views of nodes on pools that do not name them; returns the nodes with changes."""
        names: set[str] = set()
        for name, (node, node_devices) in self._node_devices.items():
            before = {view for view in node_devices.views if view.id in pools}
            now = {view for pool in pools if (view := self._view_from_other_node(pool, node)) is not None}
            if now != before:
                names.add(name)
                others = [view for view in node_devices.views if view not in before]
                self._node_devices[name] = (node, NodeDevices([*others, *now]))
        return names

    def _view_from_other_node(self, pool: PoolId, node: Node) -> View | None:
        """What a node sees of a pool that does not name it."""
        wide = self._wide.get(pool)
        return self._bad.get(pool) if wide is None else wide.seen_from(node)

    def _add(self, source: ResourceSlice, changed: dict[PoolId, None]) -> None:
        driver, pool = identity = (source.spec.driver, source.spec.pool.name)
        entries = tuple(
            DeviceEntry(DeviceId(driver, pool, device.name), device, source, self._kinds.of(driver, device))
            for device in source.spec.devices
        )
        self._slices[source.name] = Slice(source, entries)
        self._members.setdefault(identity, {})[source.name] = self._slices[source.name]
        changed[identity] = None

    def _drop(self, name: str, changed: dict[PoolId, None]) -> None:
        known = self._slices.pop(name, None)
        if known is not None:
            identity = (known.source.spec.driver, known.source.spec.pool.name)
            del self._members[identity][name]
            changed[identity] = None

    def _rebuild(self, identity: PoolId) -> Pool | None:
        old = self._pools.pop(identity, None)
        for name in old.node_names if old is not None else ():
            del self._of_node[name][identity]
        self._wide.pop(identity, None)
        self._bad.pop(identity, None)
        members = self._members.get(identity)
        if not members:
            self._members.pop(identity, None)
            return None
        pool = self._pools[identity] = Pool(identity, list(members.values()), self._shapes)
        for name in pool.node_names:
            self._of_node.setdefault(name, {})[identity] = None
        if pool.wide:
            self._wide[identity] = pool
        elif pool.seen_from_other_nodes is not None:
            self._bad[identity] = pool.seen_from_other_nodes
        return pool

    def seen_from(self, node: Node) -> NodeDevices:
        """The devices that a node sees; depends on its name and labels alone."""
        known = self._node_devices.get(node.name)
        if known is not None and (known[0] is node or known[0].labels == node.labels):
            return known[1]
        near = self._of_node.get(node.name, {})
        far = (identity for identity in (*self._wide, *self._bad) if identity not in near)
        views = [self._pools[identity].seen_from(node) for identity in near]
        views += [self._view_from_other_node(identity, node) for identity in far]
        node_devices = NodeDevices(view for view in views if view is not None)
        self._node_devices[node.name] = (node, node_devices)
        return node_devices

    def forget_all_but(self, names: Container[str]) -> None:
        """Drop what other nodes see."""
        self._node_devices = {name: known for name, known in self._node_devices.items() if name in names}

    def is_wide(self, pool: PoolId) -> bool:
        """Whether nodes that a pool does not name may see its devices."""
        return pool in self._wide

    def named_by(self, pool: PoolId) -> AbstractSet[str]:
        """The nodes that a pool names; none for a pool that no driver has published."""
        known = self._pools.get(pool)
        return frozenset() if known is None else known.node_names

    def slices(self) -> Iterable[tuple[ResourceSlice, tuple[DeviceEntry, ...]]]:
        """All slices of all generations, with their devices."""
        return ((each.source, each.entries) for each in self._slices.values())
