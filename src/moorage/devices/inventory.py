"""Everything drivers publish, kept up to date: a change of slices rebuilds only the pools it touches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from moorage.api.devices import Device, ResourceSlice
from moorage.api.node import Node
from moorage.cluster.objects import ObjectTable
from moorage.devices.pools import DeviceId, Entry, Kind, Pool, PoolId, Shapes, Slice, View


class Outlook:
    """All that one node sees, in the order in which devices are tried."""

    __slots__ = ("entries", "reachable", "situation", "view_of", "views")

    def __init__(self, views: Iterable[View]) -> None:
        self.views = sorted(views, key=lambda view: (view.after_others, view.id))
        self.entries: list[Entry] = []
        self.reachable: list[bool] = []
        self.view_of: list[View] = []
        for view in self.views:
            if view.usable:
                self.entries += view.entries
                self.reachable += view.reachable
                self.view_of += [view] * len(view.entries)
        self.situation = tuple(v.shape if v.usable else (v.id, v.invalid) for v in self.views)
        """What nodes have in common for which, with nothing taken, searches go the same way."""


class Inventory:
    """All pools, kept up to date with the slices there are."""

    def __init__(self) -> None:
        self._table: ObjectTable[ResourceSlice] | None = None
        self._version = -1
        self._slices: dict[str, Slice] = {}
        self._pools: dict[PoolId, Pool] = {}
        self._members: dict[PoolId, dict[str, Slice]] = {}
        self._of_node: dict[str, dict[PoolId, None]] = {}
        self._outlooks: dict[str, tuple[Node, Outlook]] = {}
        self._kinds: WeakValueDictionary[Any, Kind] = WeakValueDictionary()
        self._shapes = Shapes()
        self._wide: list[Pool] = []
        self._bad: dict[PoolId, View] = {}
        """Pools that nodes without any of their devices must know of."""

    def refresh(self, table: ObjectTable[ResourceSlice]) -> None:
        """Take up what changed in the table of slices."""
        if table is self._table and table.version == self._version:
            return
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
        for identity in changed:
            self._rebuild(identity)
        if changed:
            self._outlooks.clear()
            self._wide = [pool for pool in self._pools.values() if pool.wide]
            narrow = (pool for pool in self._pools.values() if not pool.wide)
            self._bad = {pool.id: view for pool in narrow if (view := pool.seen_from_afar) is not None}

    def _add(self, source: ResourceSlice, changed: dict[PoolId, None]) -> None:
        driver, pool = identity = (source.spec.driver, source.spec.pool.name)
        entries = tuple(
            Entry(DeviceId(driver, pool, device.name), device, source, self._kind(driver, device))
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

    def _rebuild(self, identity: PoolId) -> None:
        old = self._pools.pop(identity, None)
        for name in old.node_names if old is not None else ():
            del self._of_node[name][identity]
        members = self._members.get(identity)
        if not members:
            self._members.pop(identity, None)
            return
        pool = self._pools[identity] = Pool(identity, list(members.values()), self._shapes)
        for name in pool.node_names:
            self._of_node.setdefault(name, {})[identity] = None

    def _kind(self, driver: str, device: Device) -> Kind:
        bare = msgspec.structs.replace(
            device,
            name="",
            node_name=None,
            node_selector=None,
            all_nodes=False,
            binds_to_node=False,
            taints=tuple(msgspec.structs.replace(taint, time_added=None) for taint in device.taints),
        )
        key = (driver, msgspec.msgpack.encode(bare, enc_hook=_plain, order="deterministic"))
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Kind(driver, device)
        return kind

    def seen_from(self, node: Node) -> Outlook:
        """What a node sees."""
        known = self._outlooks.get(node.name)
        if known is not None and known[0] is node:
            return known[1]
        near = self._of_node.get(node.name, {})
        views = [self._pools[identity].seen_from(node) for identity in near]
        views += [pool.seen_from(node) for pool in self._wide if pool.id not in near]
        views += [view for identity, view in self._bad.items() if identity not in near]
        outlook = Outlook(view for view in views if view is not None)
        self._outlooks[node.name] = (node, outlook)
        return outlook

    def slices(self) -> Iterable[tuple[ResourceSlice, tuple[Entry, ...]]]:
        """All slices as they are, whatever their generation, with their devices."""
        return ((each.source, each.entries) for each in self._slices.values())


def _plain(value: Any) -> Any:
    """What msgpack does not know: quantities, which can be larger than its integers."""
    return str(int(value))
