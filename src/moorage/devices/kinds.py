"""Kinds of devices: what selectors and searches can tell apart, and what selectors said of each.

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
from moorage.cel.reads import MAX_NAMES
from moorage.cel.values import CelError


class Verdict:
    """What an expression said of devices, or why it could not say anything, and what it can have read."""

    __slots__ = ("__weakref__", "answer", "reads")

    def __init__(self, answer: bool | CelError, reads: frozenset[str] | None) -> None:
        self.answer = answer
        self.reads = reads


class Verdicts:
    """The verdicts that kinds of devices remember. When there are too many, all are forgotten at once."""

    def __init__(self, limit: int = 400_000) -> None:
        self.limit = limit
        self.count = 0
        """How many the kinds hold, those that several hold counted for each."""
        self.generation = 0
        self._shared: WeakValueDictionary[Hashable, Verdict] = WeakValueDictionary()

    def add(self) -> None:
        """One more."""
        self.count += 1
        if self.count > self.limit:
            self.count = 1
            self.generation += 1

    def known(self, expression: str, look: Hashable) -> Verdict | None:
        """What an expression said of a device that looks the same to it, if some kind still holds that."""
        return self._shared.get((expression, look))

    def share(self, expression: str, look: Hashable, verdict: Verdict) -> None:
        """Let other kinds know, for as long as some kind holds it."""
        self._shared[expression, look] = verdict


class Base:
    """All of a kind but its plain attributes: those matter only where they are read."""

    __slots__ = ("__weakref__",)


class Kind:
    """What devices that differ only in name and place have in common; selectors judge each kind once.

    Verdicts go with the slices that publish such devices, and when there are too many.
    """

    __slots__ = ("__weakref__", "_attributes", "_generation", "_held", "_verdicts", "base", "driver", "facts")

    def __init__(self, driver: str, device: Device, base: Base, verdicts: Verdicts) -> None:
        self.driver = driver
        self.base = base
        self.facts = DeviceFacts(driver, device)
        self._attributes = device.attributes
        self._verdicts = verdicts
        self._generation = verdicts.generation
        self._held: dict[str, Verdict] = {}

    def verdict(self, expression: str) -> Verdict | None:
        """What an expression said; None if it was not asked."""
        return self._held.get(expression) if self._generation == self._verdicts.generation else None

    def look_to(self, reads: frozenset[str] | None) -> Hashable:
        """What an expression that reads some attributes can see of it; None if nothing is left out."""
        if reads is None:
            return None
        return self.base, *map(self._attributes.get, published_names(reads, self.driver))

    def shared_verdict(self, expression: str, look: Hashable) -> Verdict | None:
        """What an expression said of another kind that looks the same to it."""
        verdict = None if look is None else self._verdicts.known(expression, look)
        if verdict is not None:
            self._hold(expression, verdict)
        return verdict

    def remember(self, expression: str, look: Hashable, verdict: Verdict) -> None:
        """Keep what an expression said, for all kinds that look the same to it."""
        self._hold(expression, verdict)
        if look is not None:
            self._verdicts.share(expression, look, verdict)

    def _hold(self, expression: str, verdict: Verdict) -> None:
        self._verdicts.add()
        if self._generation != self._verdicts.generation:
            self._generation = self._verdicts.generation
            self._held = {}
        self._held[expression] = verdict


class Kinds:
    """One object for each kind of device that is published."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Hashable, Kind] = WeakValueDictionary()
        self._bases: WeakValueDictionary[Hashable, Base] = WeakValueDictionary()
        self._verdicts = Verdicts()

    def of(self, driver: str, device: Device) -> Kind:
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
        common = (driver, _ENCODER.encode(bare))
        key = (common, _ENCODER.encode(device.attributes))
        kind = self._known.get(key)
        if kind is None:
            base = self._bases.get(common)
            if base is None:
                base = self._bases[common] = Base()
            kind = self._known[key] = Kind(driver, device, base, self._verdicts)
        return kind


def _is_plain(attribute: DeviceAttribute) -> bool:
    """Whether an attribute matters only where it is read; one with a bad version fails every expression."""
    return (
        attribute.string_value is not None
        or attribute.int_value is not None
        or attribute.bool_value is not None
    )


def _encoded(value: Any) -> Any:
    """What msgpack does not know: quantities, which can be larger than its integers."""
    return str(int(value))


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_encoded, order="deterministic")


@lru_cache(maxsize=1024)
def published_names(names: frozenset[str], driver: str) -> tuple[str, ...]:
    """What a driver may call the attributes with these names; its own need no domain."""
    published = []
    for name in sorted(names):
        published.append(name)
        domain, slash, identifier = name.partition("/")
        if slash and domain == driver:
            published.append(identifier)
    return tuple(published)


class Reading:
    """The attributes that a search can have read so far, as `domain/name`."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: frozenset[str] | None = frozenset()
        """None: possibly all of them."""
        self._added: set[frozenset[str] | None] = set()
        self.add(frozenset(names))

    def add(self, names: frozenset[str] | None) -> None:
        """These can have been read as well."""
        if names in self._added:
            return
        self._added.add(names)
        together = None if self.names is None or names is None else self.names | names
        self.names = None if together is None or len(together) > MAX_NAMES else together
