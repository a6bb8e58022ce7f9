"""Taints that DeviceTaintRules give to devices, in addition to those that drivers publish."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from moorage.api.devices import Device, DeviceTaint, DeviceTaintRuleSpec, DeviceTaintSelector, ResourceSlice

_ALL_DEVICES = DeviceTaintSelector()


def tainted(source: ResourceSlice, rules: Sequence[DeviceTaintRuleSpec]) -> tuple[Device, ...]:
    """The devices of a slice, with the taints of the rules that are for them."""
    devices = source.spec.devices
    if not rules:
        return devices
    return tuple(
        replace(device, taints=(*device.taints, *taints))
        if (taints := _taints(source, device.name, rules))
        else device
        for device in devices
    )


def _taints(source: ResourceSlice, device: str, rules: Sequence[DeviceTaintRuleSpec]) -> list[DeviceTaint]:
    spec = source.spec
    found = []
    for rule in rules:
        wanted = rule.device_selector or _ALL_DEVICES
        pairs = ((wanted.driver, spec.driver), (wanted.pool, spec.pool.name), (wanted.device, device))
        if all(name is None or name == own for name, own in pairs):
            found.append(rule.taint)
    return found
