"""Consumable capacity: how much of a device's capacity a request takes, and whether that much is left.

Requests contain an amount; a device's request policy rounds it up. Devices that are not shared are checked as
well: a request for more than a device has is not satisfied.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api.devices import CapacityRange, CapacityRequestPolicy, DeviceCapacity
from moorage.api.quantity import NANO, Quantity, format_quantity

MAX_AMOUNT = ((1 << 63) - 1) * NANO
"""The largest amount that Kubernetes rounds up in steps."""

_NOT_REPRESENTABLE = "capacity request cannot be represented in the device's range arithmetic"


class InvalidAmountError(Exception):
    """An amount of capacity is too large to be computed with."""


def consumed(
    capacity: Mapping[str, DeviceCapacity], requested: Mapping[str, Quantity]
) -> dict[str, Quantity]:
    """How much of each capacity a request takes."""
    return {name: _rounded(requested.get(name), each) for name, each in capacity.items()}


def fits(
    capacity: Mapping[str, DeviceCapacity],
    requested: Mapping[str, Quantity],
    *taken: Mapping[str, int],
) -> bool:
    """Whether a device has, and its policies allow, a request's amounts beside those taken already."""
    if any(name not in capacity for name in requested):
        return False
    for name, amount in consumed(capacity, requested).items():
        policy = capacity[name].request_policy
        if policy is not None and not _allowed(amount, policy):
            return False
        if amount + sum(others.get(name, 0) for others in taken) > capacity[name].value:
            return False
    return True


def check_amounts(capacity: Mapping[str, DeviceCapacity], requested: Mapping[str, Quantity]) -> None:
    """Raise InvalidAmountError if an amount is too large to be rounded up in steps."""
    if any(name not in capacity for name in requested):
        return
    for name, amount in sorted(requested.items()):
        if not _is_rounded_in_steps(amount, capacity[name]) or _rounded(amount, capacity[name]) <= MAX_AMOUNT:
            continue
        text = format_quantity(amount)
        reason = f"rounding request {text} up to the next step passes MaxInt64"
        if amount > MAX_AMOUNT:
            reason = f"request {text} exceeds MaxInt64"
        raise InvalidAmountError(f'capacity "{name}": {_NOT_REPRESENTABLE}: {reason}')


def _is_rounded_in_steps(requested: Quantity, capacity: DeviceCapacity) -> bool:
    valid = None if capacity.request_policy is None else capacity.request_policy.valid_range
    return valid is not None and valid.min is not None and valid.step is not None and requested >= valid.min


def _rounded(requested: Quantity | None, capacity: DeviceCapacity) -> Quantity:
    policy = capacity.request_policy
    if requested is None:
        return capacity.value if policy is None or policy.default is None else policy.default
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_in_range(requested, policy.valid_range)
    return next((valid for valid in policy.valid_values if requested <= valid), requested)


def _rounded_in_range(requested: Quantity, valid: CapacityRange) -> Quantity:
    assert valid.min is not None
    if requested < valid.min:
        return valid.min
    if valid.step is None:
        return requested
    steps = -(-(requested.value - valid.min.value) // valid.step.value)
    return Quantity((valid.min.value + steps * valid.step.value) * NANO)


def _allowed(amount: Quantity, policy: CapacityRequestPolicy) -> bool:
    if amount == policy.default:
        return True
    valid = policy.valid_range
    if valid is None:
        return not policy.valid_values or amount in policy.valid_values
    if valid.max is not None and amount > valid.max:
        return False
    if valid.step is None:
        return True
    start = 0 if valid.min is None else valid.min.value
    return (amount.value - start) % valid.step.value == 0
