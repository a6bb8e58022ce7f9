"""Kinds of devices: what selectors and searches can distinguish, and the selectors' results for each.

A device's attributes are often its own, such as a serial number, but selectors and constraints read few of
them. Devices are the same to a selector if they have the same `Base` and the same values of the attributes
that it reads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec

from moorage.api.devices import Device, DeviceAttribute
from moorage.cel.program import DeviceFacts
from moorage.cel.reads import AttributesRead, Literals, together
from moorage.cel.values import CelError
from moorage.plugins.dynamic_resources.structured.consumable_capacity import fits


class SelectorResult:
    """The result of an expression for devices, or its error, and the attributes it can have read."""

    __slots__ = ("__weakref__", "answer", "reads")

    def __init__(self, answer: bool | CelError, reads: AttributesRead | None) -> None:
        self.answer = answer
        self.reads = reads


class SelectorResults:
    """Cached results of selectors by kind of device. When there are too many, all are dropped at once."""

    def __init__(self, limit: int = 400_000) -> None:
        self.limit = limit
        self.count = 0
        """Number of results in all kinds; a shared one counts for each kind."""
        self.generation = 0
        self._shared: WeakValueDictionary[Hashable, SelectorResult] = WeakValueDictionary()

    def add(self) -> None:
        """Count one more result."""
        self.count += 1
        if self.count > self.limit:
            self.count = 1
            self.generation += 1

    def known(self, expression: str, projection: Hashable) -> SelectorResult | None:
        """The result of an expression for an equivalent device, if some kind still holds it."""
        return self._shared.get((expression, projection))

    def share(self, expression: str, projection: Hashable, selector_result: SelectorResult) -> None:
        """Share a result with other kinds, as long as some kind holds it."""
        self._shared[expression, projection] = selector_result


class Base:
    """All of a kind except its plain attributes, which matter only where they are read."""

    __slots__ = ("__weakref__",)


class DeviceKind:
    """What devices that differ only in name and place have in common; selectors are evaluated once per kind.

    Results are dropped with the slices that publish such devices, and when there are too many.
    """

    __slots__ = (
        "__weakref__",
        "_attributes",
        "_generation",
        "_held",
        "_selector_results",
        "base",
        "driver",
        "facts",
        "has_default_capacity",
    )

    def __init__(self, driver: str, device: Device, base: Base, selector_results: SelectorResults) -> None:
        self.driver = driver
        self.base = base
        self.facts = DeviceFacts(driver, device)
        self.has_default_capacity = fits(device.capacity, {})
        """Whether a device of which nothing is in use has what requests without amounts take."""
        self._attributes = device.attributes
        self._selector_results = selector_results
        self._generation = selector_results.generation
        self._held: dict[str, SelectorResult] = {}

    def selector_result(self, expression: str) -> SelectorResult | None:
        """The result of an expression; None if it was not evaluated."""
        return self._held.get(expression) if self._generation == self._selector_results.generation else None

    def projection_for(self, reads: AttributesRead | None) -> Hashable:
        """The part of the kind that an expression reading some attributes depends on; None: all of it."""
        if reads is None:
            return None
        projection: list[Hashable] = [self.base]
        for name, literals in published(reads, self.driver):
            projection += projected([self._attributes], name, literals)
        return tuple(projection)

    def shared_result(self, expression: str, projection: Hashable) -> SelectorResult | None:
        """The result of an expression for another kind that is equivalent for it."""
        selector_result = None if projection is None else self._selector_results.known(expression, projection)
        if selector_result is not None:
            self._hold(expression, selector_result)
        return selector_result

    def store_result(self, expression: str, projection: Hashable, selector_result: SelectorResult) -> None:
        """Keep the result of an expression, for all kinds that are equivalent for it."""
        self._hold(expression, selector_result)
        if projection is not None:
            self._selector_results.share(expression, projection, selector_result)

    def _hold(self, expression: str, selector_result: SelectorResult) -> None:
        self._selector_results.add()
        if self._generation != self._selector_results.generation:
            self._generation = self._selector_results.generation
            self._held = {}
        self._held[expression] = selector_result


class DeviceKinds:
    """One object for each kind of device that is published."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Hashable, DeviceKind] = WeakValueDictionary()
        self._bases: WeakValueDictionary[Hashable, Base] = WeakValueDictionary()
        self._selector_results = SelectorResults()

    def of(self, driver: str, device: Device) -> DeviceKind:
        """The kind of a driver's device."""
        special = {name: each for name, each in device.attributes.items() if not _is_plain(each)}
        bare = msgspec.structs.replace(
            device,
            name="",
            attributes=special,
            node_name=None,
            node_selector=None,
            all_nodes=False,
            binds_to_node=False,
            taints=tuple(msgspec.structs.replace(taint, time_added=None) for taint in device.taints),
        )
        common = (driver, CONTENT_ENCODER.encode(bare))
        key = (common, CONTENT_ENCODER.encode(device.attributes))
        kind = self._known.get(key)
        if kind is None:
            base = self._bases.get(common)
            if base is None:
                base = self._bases[common] = Base()
            kind = self._known[key] = DeviceKind(driver, device, base, self._selector_results)
        return kind


def _is_plain(attribute: DeviceAttribute) -> bool:
    """Whether an attribute matters only where it is read; one with a bad version fails every expression."""
    values = (attribute.string_value, attribute.int_value, attribute.bool_value)
    return values.count(None) == len(values) - 1


def _encoded_quantity(value: Any) -> Any:
    """A quantity as text: it can be larger than msgpack's integers."""
    return str(int(value))


CONTENT_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_encoded_quantity, order="deterministic")
"""Encodes equal objects to equal bytes."""


@lru_cache(maxsize=1024)
def published(reads: AttributesRead, driver: str) -> tuple[tuple[str, Literals], ...]:
    """What is read by the names that a driver may give to attributes; its own need no domain."""
    found = []
    for name, literals in sorted(reads, key=lambda each: each[0]):
        found.append((name, literals))
        domain, slash, identifier = name.partition("/")
        if slash and domain == driver:
            found.append((identifier, literals))
    return tuple(found)


def projected(
    devices: Iterable[dict[str, DeviceAttribute]], name: str, literals: Literals
) -> list[DeviceAttribute | str | int | None]:
    """What selectors can distinguish of an attribute's values: strings other than literals by length."""
    return [
        value
        if (value := attributes.get(name)) is None or (text := value.string_value) is None
        else (text if literals is None or text in literals else len(text))
        for attributes in devices
    ]


class Reading:
    """The attributes that selectors can have read so far in a search."""

    def __init__(self) -> None:
        self.reads: AttributesRead | None = frozenset()
        """None: possibly all attributes."""
        self._added: set[AttributesRead | None] = set()

    def add(self, reads: AttributesRead | None) -> None:
        """Add attributes that can have been read."""
        if reads not in self._added:
            self._added.add(reads)
            both = self.reads is not None and reads is not None
            self.reads = together((*(self.reads or ()), *(reads or ()))) if both else None
