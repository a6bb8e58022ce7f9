"""Everything drivers publish, kept up to date: a change of slices rebuilds only the pools it touches.

A pool is narrow if all of its devices are for nodes that it names; wide pools may concern every node.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import accumulate, chain

from moorage.api.devices import DeviceTaintRule, DeviceTaintRuleSpec, ResourceSlice
from moorage.api.node import Node
from moorage.cel.budget import WorkBudget
from moorage.cluster.object_tables import ObjectTable
from moorage.cluster.table_reader import TableReader
from moorage.plugins.dynamic_resources.structured.constraints import equality
from moorage.plugins.dynamic_resources.structured.device_blocks import Block, Blocks
from moorage.plugins.dynamic_resources.structured.device_kinds import DeviceKinds
from moorage.plugins.dynamic_resources.structured.device_rules import OLDER_RULES, DeviceRules
from moorage.plugins.dynamic_resources.structured.device_taints import tainted
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

_MAX_LABEL_VALUES = 1024
"""Maximum number of combinations of labels' values for which views are shared."""


class NodeDevices:
    """All that one node sees, in the order in which devices are tried."""

    def __init__(self, views: Iterable[View], blocks: Blocks) -> None:
        self.views = sorted(views, key=lambda view: (view.after_others, view.id))
        self.blocks = list(blocks.of(self.views))
        self._equal_values: dict[tuple[str, ...], Hashable] = {}

    @cached_property
    def meets_invalid_pools(self) -> bool:
        """Whether some pools cannot be used because of mistakes of their drivers."""
        return any(view.invalid for view in self.views)

    @cached_property
    def starts(self) -> list[int]:
        """The place of each block's first device among all devices."""
        return [0, *accumulate(len(block.entries) for block in self.blocks)][:-1]

    def locate(self, index: int) -> tuple[Block, int]:
        """The block of a device, and its place there."""
        number = bisect_right(self.starts, index) - 1
        return self.blocks[number], index - self.starts[number]

    def entry(self, index: int) -> DeviceEntry:
        """The device in a place."""
        block, place = self.locate(index)
        return block.entries[place]

    def equal_values(self, names: tuple[str, ...], shapes: PoolShapes, work: WorkBudget) -> Hashable:
        """Which devices have equal values of each of some attributes: all that constraints depend on."""
        if not names:
            return None
        known = self._equal_values.get(names)
        if known is None:
            if len(self._equal_values) == MAX_PROJECTIONS:
                self._equal_values.clear()
            outlines = [(view.outline, view.id[0]) for view in self.views if view.outline is not None]
            work.spend(len(names) * sum(VIEW_WORK + len(view.entries) for view in self.views))
            known = shapes.one(
                tuple(
                    [
                        equality(
                            chain.from_iterable([each.values_of(name, driver) for each, driver in outlines])
                        )
                        for name in names
                    ]
                )
            )
            self._equal_values[names] = known
        return known


class _WideViews:
    """The views of wide pools, shared by nodes with equal values of the labels that select them."""

    def __init__(self, pools: Mapping[PoolId, Pool]) -> None:
        self.by_name = [identity for identity, pool in pools.items() if pool.label_keys is None]
        """The pools for which the names of nodes matter as well."""
        self._by_labels = [pool for pool in pools.values() if pool.label_keys is not None]
        self._keys = sorted(frozenset[str]().union(*(pool.label_keys or () for pool in self._by_labels)))
        self._known: dict[tuple[str | None, ...], list[View]] = {}

    def of(self, node: Node) -> list[View]:
        """What a node sees of the pools that labels select."""
        labels = tuple([node.labels.get(key) for key in self._keys])
        views = self._known.get(labels)
        if views is None:
            if len(self._known) == _MAX_LABEL_VALUES:
                self._known.clear()
            seen = (pool.seen_from(node) for pool in self._by_labels)
            views = self._known[labels] = [view for view in seen if view is not None]
        return views


class Inventory:
    """All pools, kept up to date with the slices there are."""

    def __init__(self, rules: DeviceRules = OLDER_RULES) -> None:
        self.generation = 0
        """Incremented when pools change."""
        self._rules = rules
        self._reader = TableReader()
        self._taint_reader = TableReader()
        self._taint_rules: list[DeviceTaintRuleSpec] = []
        self._slices: dict[str, Slice] = {}
        self._pools: dict[PoolId, Pool] = {}
        self._members: dict[PoolId, dict[str, Slice]] = {}
        self._of_node: dict[str, dict[PoolId, None]] = {}
        self._node_devices: dict[str, tuple[Node, NodeDevices]] = {}
        self._kinds = DeviceKinds()
        self._shapes = PoolShapes()
        self._blocks = Blocks(self.is_wide)
        self._wide: dict[PoolId, Pool] = {}
        self._wide_views = _WideViews(self._wide)
        self._bad: dict[PoolId, View] = {}
        """Invalid pools that also concern nodes without any of their devices."""

    def refresh(
        self, table: ObjectTable[ResourceSlice], taint_rules: ObjectTable[DeviceTaintRule] | None = None
    ) -> AbstractSet[str]:
        """Apply changes of the tables of slices and taint rules.

        Returns the names of the nodes whose devices may have changed since the last call.
        """
        keys = self._reader.changed_keys(table)
        are_rules_new = taint_rules is not None and self._taint_reader.changed_keys(taint_rules) != []
        if taint_rules is not None and are_rules_new:
            self._taint_rules = [each.spec for each in taint_rules]
        if keys is None or are_rules_new:
            keys = [*(("", name) for name in self._slices), *(("", source.name) for source in table)]
        changed: dict[PoolId, None] = {}
        for name in dict.fromkeys(name for _, name in keys):
            source, known = table.get("", name), self._slices.get(name)
            if known is None or known.source is not source or are_rules_new:
                self._drop(name, changed)
                if source is not None:
                    self._add(source, changed)
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
        if far:
            self._wide_views = _WideViews(self._wide)
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
                self._node_devices[name] = (node, NodeDevices([*others, *now], self._blocks))
        return names

    def _view_from_other_node(self, pool: PoolId, node: Node) -> View | None:
        """What a node sees of a pool that does not name it."""
        wide = self._wide.get(pool)
        return self._bad.get(pool) if wide is None else wide.seen_from(node)

    def _add(self, source: ResourceSlice, changed: dict[PoolId, None]) -> None:
        driver, pool = identity = (source.spec.driver, source.spec.pool.name)
        devices = tainted(source, self._taint_rules)
        entries = tuple(
            DeviceEntry(DeviceId(driver, pool, device.name), device, source, self._kinds.of(driver, device))
            for device in devices
        )
        self._slices[source.name] = Slice(source, entries, self._rules)
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
        far = (identity for identity in (*self._wide_views.by_name, *self._bad) if identity not in near)
        views = [self._pools[identity].seen_from(node) for identity in near]
        views += [self._view_from_other_node(identity, node) for identity in far]
        there = (view for view in views if view is not None)
        node_devices = NodeDevices([*there, *self._wide_views.of(node)], self._blocks)
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
