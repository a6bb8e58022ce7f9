"""Constraints: attributes that the devices of a claim must have in common, or must not have in common.

They are evaluated device by device and keep state: once one is violated, more devices do not satisfy it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Protocol

from moorage.api.devices import DeviceAttribute, DeviceConstraint
from moorage.plugins.dynamic_resources.structured.device_rules import OLDER_RULES, DeviceRules
from moorage.plugins.dynamic_resources.structured.pools import DeviceEntry

_NO_VALUE = DeviceAttribute()
_MISSING, _EQUAL_TO_NOTHING = 0, 1
"""Codes of an attribute that is absent, and of one without a value."""


class ClaimConstraint(Protocol):
    """A condition on all devices of a claim's requests."""

    def add(self, request: str, alternative: str, entry: DeviceEntry) -> bool:
        """Whether a device may be allocated; if so, it is added."""

    def remove(self, request: str, alternative: str) -> None:
        """Remove the device that was added last for a request."""

    def required_value(self, request: str, alternative: str) -> tuple[str, DeviceAttribute] | None:
        """An attribute, and the only value of it with which a device can be added now; None: any."""


def attribute_of(entry: DeviceEntry, name: str) -> DeviceAttribute | None:
    """A device's attribute by its qualified name; the driver's own attributes need no domain."""
    attributes = entry.device.attributes
    found = attributes.get(name)
    if found is not None:
        return found
    domain, slash, identifier = name.partition("/")
    return attributes.get(identifier) if slash and domain == entry.id.driver else None


class _Scope:
    """The requests a constraint applies to: all of them if none is named."""

    def __init__(self, requests: tuple[str, ...]) -> None:
        self._requests = frozenset(requests)

    def covers(self, request: str, alternative: str) -> bool:
        if not self._requests or request in self._requests:
            return True
        return bool(alternative) and f"{request}/{alternative}" in self._requests


class MatchAttribute:
    """All devices have one and the same value."""

    def __init__(self, name: str, requests: tuple[str, ...]) -> None:
        self._name = name
        self._scope = _Scope(requests)
        self._value: DeviceAttribute | None = None
        self._count = 0

    def add(self, request: str, alternative: str, entry: DeviceEntry) -> bool:
        """The first device determines the value that the others must have."""
        if not self._scope.covers(request, alternative):
            return True
        value = attribute_of(entry, self._name)
        if value is None:
            return False
        if self._count == 0:
            self._value = value
        elif value != self._value or value == _NO_VALUE:
            return False
        self._count += 1
        return True

    def remove(self, request: str, alternative: str) -> None:
        """Remove a device."""
        if self._scope.covers(request, alternative):
            self._count -= 1

    def required_value(self, request: str, alternative: str) -> tuple[str, DeviceAttribute] | None:
        """The value of the first device."""
        if not self._count or self._value is None or not self._scope.covers(request, alternative):
            return None
        return self._name, self._value


class DistinctAttribute:
    """No device has a value that the last device of any request has.

    Only the last value of each request is kept, and none after backtracking, as in kube-scheduler, although
    this allows equal values where one request asks for three devices or more.
    """

    def __init__(self, name: str, requests: tuple[str, ...]) -> None:
        self._name = name
        self._scope = _Scope(requests)
        self._values: dict[str, DeviceAttribute] = {}
        self._count = 0

    def add(self, request: str, alternative: str, entry: DeviceEntry) -> bool:
        """A device must have the attribute, and with a new value."""
        if not self._scope.covers(request, alternative):
            return True
        value = attribute_of(entry, self._name)
        if value is None:
            return False
        if self._count and (value in self._values.values() or (self._values and value == _NO_VALUE)):
            return False
        self._values[request] = value
        self._count += 1
        return True

    def remove(self, request: str, alternative: str) -> None:
        """Remove a device."""
        if self._scope.covers(request, alternative):
            self._values.pop(request, None)
            self._count -= 1

    def required_value(self, request: str, alternative: str) -> None:
        """Any value but those of other devices."""


class DistinctFromAll:
    """No two devices have the same value."""

    def __init__(self, name: str, requests: tuple[str, ...]) -> None:
        self._name = name
        self._scope = _Scope(requests)
        self._values: list[DeviceAttribute] = []

    def add(self, request: str, alternative: str, entry: DeviceEntry) -> bool:
        """A device must have the attribute, and with a new value."""
        if not self._scope.covers(request, alternative):
            return True
        value = attribute_of(entry, self._name)
        if value is None or value in self._values or (self._values and value == _NO_VALUE):
            return False
        self._values.append(value)
        return True

    def remove(self, request: str, alternative: str) -> None:
        """Remove the device that was added last."""
        if self._scope.covers(request, alternative):
            self._values.pop()

    def required_value(self, request: str, alternative: str) -> None:
        """Any value but those of other devices."""


def equality(values: Iterable[Hashable]) -> tuple[int, ...]:
    """What constraints depend on of the devices' values of an attribute: which of them are equal."""
    numbers: dict[Hashable, int] = {None: _MISSING, _NO_VALUE: _EQUAL_TO_NOTHING}
    return tuple([numbers.setdefault(each, len(numbers)) for each in values])


def constraint(source: DeviceConstraint, rules: DeviceRules = OLDER_RULES) -> ClaimConstraint | None:
    """A constraint ready to be evaluated; None for an unknown kind."""
    if source.match_attribute is not None:
        return MatchAttribute(source.match_attribute, source.requests)
    if source.distinct_attribute is not None:
        distinct = DistinctFromAll if rules.distinct_attribute_compares_all_devices else DistinctAttribute
        return distinct(source.distinct_attribute, source.requests)
    return None


def constrained_attribute(source: DeviceConstraint) -> str:
    """The attribute of a constraint of a known kind."""
    return source.distinct_attribute or "" if source.match_attribute is None else source.match_attribute
