"""Pools of devices: which of their slices count, and how nodes see them.

A pool's slices come in generations, of which only the newest counts, and a pool is only valid if all of its
slices exist and are consistent. The node selection of a slice determines the nodes it concerns. Nodes
that see the same slices of a pool share one `View` of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from weakref import WeakValueDictionary

from moorage.api.base import NodeSelector
from moorage.api.devices import Device, DeviceAttribute, ResourceSlice
from moorage.api.node import Node
from moorage.api.selectors import NodeTerm, node_terms
from moorage.cel.budget import WorkBudget
from moorage.cel.reads import AttributesRead
from moorage.plugins.dynamic_resources.structured.device_kinds import (
    Base,
    DeviceKind,
    Reading,
    projected,
    published,
)
from moorage.plugins.dynamic_resources.structured.device_rules import OLDER_RULES, DeviceRules

MAX_PROJECTIONS = 8
"""Maximum number of sets of attributes for which a pool or a node keeps the projection of its devices."""

VIEW_WORK = 4
"""Cost of projecting a pool's devices to some attributes, in units of work."""

VALUES_PER_UNIT = 2
"""Number of attributes of devices that are read in a unit of work."""

PoolId = tuple[str, str]
"""Driver and pool name."""


class DeviceId(NamedTuple):
    """A device's full name."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


class PoolShape:
    """A pool's contents without names: searches in two pools of one shape have the same result."""

    __slots__ = ("__weakref__",)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceEntry:
    """A device where it was published."""

    id: DeviceId
    device: Device
    slice: ResourceSlice
    kind: DeviceKind


CounterAmounts = dict[tuple[str, str], int]
"""Amounts by counter set and counter."""


def consumption(device: Device) -> CounterAmounts:
    """What a device takes from the counters it shares with others."""
    amounts: CounterAmounts = {}
    for part in device.consumes_counters:
        for name, counter in part.counters.items():
            key = (part.counter_set, name)
            amounts[key] = amounts.get(key, 0) + counter.value
    return amounts


@dataclass(frozen=True, eq=False)
class View:
    """A pool as some nodes see it. Nothing is allocated from a pool that is incomplete or invalid."""

    id: PoolId
    incomplete: bool = False
    invalid: bool = False
    entries: tuple[DeviceEntry, ...] = ()
    """The devices of slices that concern the nodes, in the order in which they are tried."""
    reachable: tuple[bool, ...] = ()
    """Whether the nodes reach each of these devices; slices can specify it device by device."""
    others: tuple[DeviceEntry, ...] = ()
    """The pool's other devices: they share its counters."""
    counters: CounterAmounts | None = None
    shape: PoolShape | None = None
    outline: Outline | None = None

    @property
    def usable(self) -> bool:
        """Whether devices may be allocated from it."""
        return not (self.incomplete or self.invalid)

    @property
    def projection(self) -> Hashable:
        """The shape of the view: without allocations, searches in equal shapes have the same result."""
        return self.shape if self.usable else (self.id, self.invalid)

    def projection_for(self, reading: Reading, work: WorkBudget) -> Hashable:
        """The same, for searches whose selectors read only some attributes."""
        if self.outline is None or reading.reads is None:
            return self.projection
        return self.outline.filled_in(reading.reads, self.id[0], work)

    @cached_property
    def after_others(self) -> bool:
        """Whether it is tried last, because its devices take time to get ready."""
        return any(entry.device.binding_conditions for entry in self.entries)

    @cached_property
    def positions(self) -> dict[str, int]:
        """The place of each device in `entries` and `others` together, by name."""
        return {e.id.device: i for i, e in enumerate((*self.entries, *self.others))}


class _Selection:
    """Which nodes a slice or a device is for."""

    __slots__ = ("_all", "_name", "_terms")

    def __init__(self, name: str | None, everywhere: bool, selector: NodeSelector | None) -> None:
        self._name = name or ""
        self._all = everywhere
        self._terms: tuple[NodeTerm, ...] = () if selector is None else node_terms(selector)

    def label_keys(self) -> frozenset[str] | None:
        """The labels of a node that determine whether it matches; None: its name matters, too."""
        if self._name or any(term.fields for term in self._terms):
            return None
        return frozenset(each.key for term in self._terms for each in term.labels)

    def matches(self, node: Node) -> bool:
        if self._name:
            return self._name == node.name
        return self._all or any(term.matches(node) for term in self._terms)


class Slice:
    """A slice, its devices, and which nodes it is for."""

    def __init__(
        self, source: ResourceSlice, entries: tuple[DeviceEntry, ...], rules: DeviceRules = OLDER_RULES
    ) -> None:
        spec = source.spec
        self.source = source
        self.name = source.name
        self.generation = spec.pool.generation
        self.wanted_count = spec.pool.resource_slice_count
        self.entries = entries
        self.for_counters = bool(spec.shared_counters)
        self.is_ignored = rules.compatibility_groups_hide_slices and any(
            each.compatibility_groups for device in spec.devices for each in device.consumes_counters
        )
        self.selects_nodes = rules.counter_slices_select_nodes or not self.for_counters
        """Whether only some nodes are concerned; otherwise every node is."""
        self.node_name = spec.node_name or ""
        self._whole = _Selection(spec.node_name, spec.all_nodes, spec.node_selector)
        self.by_device = spec.per_device_node_selection
        self._selects = bool(spec.node_name) or spec.all_nodes or spec.node_selector is not None

    @cached_property
    def _parts(self) -> list[_Selection]:
        devices = self.source.spec.devices
        return [_Selection(d.node_name, d.all_nodes, d.node_selector) for d in devices]

    def label_keys(self) -> frozenset[str] | None:
        """The labels of a node that determine what it reaches; None: its name matters, too."""
        return None if self.by_device else self._whole.label_keys()

    def reach(self, node: Node) -> tuple[bool, ...] | None:
        """Which of its devices a node reaches, or None if the slice does not concern the node."""
        if self.is_ignored:
            return None
        if not self.selects_nodes:
            return ()
        if self._selects:
            concerned = self._whole.matches(node)
        else:
            concerned = self.by_device and any(part.matches(node) for part in self._parts)
        if not concerned:
            return None
        if self.by_device:
            return tuple(part.matches(node) for part in self._parts)
        return (True,) * len(self.entries)


_Relevance = tuple[tuple[int, tuple[bool, ...]], ...]
"""The slices of a pool that concern a node, by index, and which of their devices it reaches."""


class Pool:
    """All slices of a pool, and the views that nodes have of it."""

    def __init__(self, identity: PoolId, slices: Sequence[Slice], shapes: PoolShapes) -> None:
        self.id = identity
        self.slices = sorted(slices, key=lambda each: each.name)
        self._shapes = shapes
        self._views: dict[_Relevance, View | None] = {}
        selecting = [each for each in self.slices if each.selects_nodes]
        self.wide = any(not each.node_name for each in selecting)
        """Whether nodes that no slice names may be concerned."""
        self.node_names = {each.node_name for each in selecting if each.node_name}
        self._for_every_node = tuple((i, ()) for i, s in enumerate(self.slices) if not s.selects_nodes)

    @cached_property
    def label_keys(self) -> frozenset[str] | None:
        """The labels of a node that determine its view; None: its name matters, too."""
        keys: set[str] = set()
        for each in self.slices:
            some = each.label_keys()
            if some is None:
                return None
            keys |= some
        return frozenset(keys)

    def seen_from(self, node: Node) -> View | None:
        """A node's view; None if the pool does not concern it."""
        reaches = ((index, each.reach(node)) for index, each in enumerate(self.slices))
        return self._view(tuple((index, reach) for index, reach in reaches if reach is not None))

    @cached_property
    def seen_from_other_nodes(self) -> View | None:
        """The view of nodes for which the pool has no devices, if it concerns them.

        Where counters concern every node, a pool with invalid counters is invalid everywhere.
        """
        view = self._view(self._for_every_node)
        return None if view is None or view.usable else view

    def _view(self, relevance: _Relevance) -> View | None:
        if not relevance:
            return None
        if relevance not in self._views:
            self._views[relevance] = self._build(relevance)
        return self._views[relevance]

    def _build(self, relevance: _Relevance) -> View | None:
        newest = max(self.slices[index].generation for index, _ in relevance)
        chosen = [(self.slices[i], reach) for i, reach in relevance if self.slices[i].generation == newest]
        wanted = chosen[0][0].wanted_count
        rest: list[Slice] = []
        if len(chosen) != wanted:
            if any(each.generation > newest for each in self.slices):
                return None
            current = [each for each in self.slices if each.generation == newest and not each.is_ignored]
            if len(current) != wanted:
                return View(self.id, incomplete=True)
            known = {each.name for each, _ in chosen}
            rest = [each for each in current if each.name not in known]
        counters = _counters(each for each in (*(each for each, _ in chosen), *rest) if each.for_counters)
        targeting = [(each, reach) for each, reach in chosen if not each.for_counters]
        entries = tuple(entry for each, _ in targeting for entry in each.entries)
        others = tuple(entry for each in rest if not each.for_counters for entry in each.entries)
        unique = len({entry.id for entry in entries}) == len(entries)
        if not unique or counters is None or not _known_counters(counters, (*entries, *others)):
            return View(self.id, invalid=True)
        reachable = tuple(flag for _, reach in targeting for flag in reach)
        return View(
            self.id,
            entries=entries,
            reachable=reachable,
            others=others,
            counters=counters,
            shape=self._shapes.of([entry.kind for entry in entries], reachable, others, counters),
            outline=Outline(
                self._shapes,
                self._shapes.of([entry.kind.base for entry in entries], reachable, others, counters),
                [entry.device.attributes for entry in entries],
            ),
        )


def _counters(slices: Iterable[Slice]) -> CounterAmounts | None:
    """All counters of a pool; None if two counter sets have one name."""
    amounts: CounterAmounts = {}
    names: set[str] = set()
    for each in slices:
        for counters in each.source.spec.shared_counters:
            if counters.name in names:
                return None
            names.add(counters.name)
            amounts |= {(counters.name, name): c.value for name, c in counters.counters.items()}
            amounts.setdefault((counters.name, ""), 0)
    return amounts


def _known_counters(counters: CounterAmounts, entries: Iterable[DeviceEntry]) -> bool:
    """Whether devices only consume counters that exist."""
    for entry in entries:
        for part in entry.device.consumes_counters:
            if (part.counter_set, "") not in counters:
                return False
            if any((part.counter_set, name) not in counters for name in part.counters):
                return False
    return True


class PoolShapes:
    """One object for each shape that a view has."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Hashable, PoolShape] = WeakValueDictionary()

    def of(
        self,
        kinds: Iterable[DeviceKind | Base],
        reachable: tuple[bool, ...],
        others: Iterable[DeviceEntry],
        counters: CounterAmounts,
    ) -> PoolShape:
        """The shape of a view with devices of these kinds; others count where they consume its counters."""
        shared = tuple(entry.kind.base for entry in others) if counters else ()
        return self.one((tuple(kinds), reachable, frozenset(counters.items()), shared))

    def one(self, key: Hashable) -> PoolShape:
        """The same object for equal keys."""
        shape = self._known.get(key)
        if shape is None:
            shape = self._known[key] = PoolShape()
        return shape


class Outline:
    """A view's shape but for its devices' attributes, which are filled in as far as a search reads them."""

    __slots__ = ("_attributes", "_filled", "_names", "_shape", "_shapes")

    def __init__(
        self, shapes: PoolShapes, shape: PoolShape, attributes: list[dict[str, DeviceAttribute]]
    ) -> None:
        self._shapes = shapes
        self._shape = shape
        self._attributes = attributes
        self._names = frozenset[str]().union(*attributes)
        self._filled: dict[AttributesRead, PoolShape] = {}

    def filled_in(self, reads: AttributesRead, driver: str, work: WorkBudget) -> PoolShape:
        """The shape with the values of some attributes of the driver's devices, as far as they are read."""
        shape = self._filled.get(reads)
        if shape is None:
            work.spend(VIEW_WORK + len(reads) * len(self._attributes) // VALUES_PER_UNIT)
            values = [
                tuple(projected(self._attributes, name, literals)) if name in self._names else None
                for name, literals in published(reads, driver)
            ]
            if len(self._filled) == MAX_PROJECTIONS:
                self._filled.clear()
            shape = self._filled[reads] = self._shapes.one((self._shape, reads, *values))
        return shape

    def values_of(self, name: str, driver: str) -> Sequence[Hashable]:
        """The devices' values of an attribute, equal where those are; None where there is none."""
        forms = [form for form, _ in published(frozenset(((name, None),)), driver) if form in self._names]
        if not forms:
            return [None] * len(self._attributes)
        values, *others = [projected(self._attributes, form, None) for form in forms]
        for other in others:
            values = [one if one is not None else two for one, two in zip(values, other, strict=True)]
        return values
