"""Consumable capacity: what policies make of a request."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.decode import convert
from moorage.api.devices import DeviceCapacity
from moorage.api.quantity import parse_quantity
from moorage.plugins.dynamic_resources.structured.consumable_capacity import consumed, fits

RANGE = {"default": "10", "validRange": {"min": "10", "max": "60", "step": "10"}}
VALUES = {"default": "2", "validValues": ["2", "4", "8"]}

CASES: dict[str, tuple[dict[str, Any] | None, str | None, str, bool]] = {
    "no policy, no request: all of it": (None, None, "100", True),
    "no policy: as requested": (None, "33", "33", True),
    "more than there is": (None, "101", "101", False),
    "the policy's default": (RANGE, None, "10", True),
    "at least the minimum": (RANGE, "3", "10", True),
    "up to the next step": (RANGE, "11", "20", True),
    "exactly on a step": (RANGE, "30", "30", True),
    "above the maximum": (RANGE, "61", "70", False),
    "a range without steps": ({"validRange": {"min": "10"}}, "33", "33", True),
    "up to the next valid value": (VALUES, "3", "4", True),
    "above all valid values": (VALUES, "9", "9", False),
    "a default need not be asked for": (VALUES, None, "2", True),
}


@pytest.mark.parametrize(("policy", "requested", "takes", "fit"), CASES.values(), ids=CASES)
def test_a_request_takes(policy: dict[str, Any] | None, requested: str | None, takes: str, fit: bool) -> None:
    spec = {"value": "100"} | ({} if policy is None else {"requestPolicy": policy})
    capacity = {"m": convert(spec, DeviceCapacity)}
    asked = {} if requested is None else {"m": parse_quantity(requested)}
    assert consumed(capacity, asked) == {"m": parse_quantity(takes)}
    assert fits(capacity, asked) is fit


def test_what_is_taken_already_counts() -> None:
    capacity = {"m": convert({"value": "100"}, DeviceCapacity)}
    asked = {"m": parse_quantity("60")}
    assert fits(capacity, asked, {"m": parse_quantity("40")}, {})
    assert not fits(capacity, asked, {"m": parse_quantity("30")}, {"m": parse_quantity("11")})


def test_a_capacity_that_a_device_does_not_have_is_not_given() -> None:
    assert not fits({}, {"m": parse_quantity("1")})
