"""What Kubernetes versions differ in when they allocate devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class DeviceRules:
    """The rules of a version: by default those of v1.36."""

    all_devices_need_room: bool = False
    """A request for all devices fails if a matching device has no capacity left; before, it is left out."""
    unrepresentable_amounts_abort: bool = False
    """Amounts of capacity that get too large when rounded up fail the attempt; before, no device fits."""
    unmeasured_shares_count: bool = False
    """A shareable device that was allocated without amounts has what it consumes of shared counters."""
    compatibility_groups_hide_slices: bool = False
    """Slices with devices in compatibility groups are ignored, so their pools are incomplete."""
    counter_slices_select_nodes: bool = False
    """Slices with shared counters concern the nodes that they select; before, they concern every node."""
    device_taint_rules_count: bool = False
    """DeviceTaintRules taint devices."""
    config_for_all_names_none: bool = False
    """Settings are listed once, and without requests if they apply to all requests of the claim."""
    selector_errors_name_device: bool = False
    """Errors of selectors name the device, and give a hint if a key does not exist."""
    distinct_attribute_compares_all_devices: bool = False
    """`distinctAttribute` compares all devices; before, only the last one of each request."""
    post_filter_is_silent: bool = False
    """Pods for which nothing can be deallocated are not told so."""
    claim_deletion_helps: bool = False
    """The deletion of an allocated claim requeues pods."""


OLDER_RULES: Final = DeviceRules()
NEWER_RULES: Final = DeviceRules(
    all_devices_need_room=True,
    unrepresentable_amounts_abort=True,
    unmeasured_shares_count=True,
    compatibility_groups_hide_slices=True,
    counter_slices_select_nodes=True,
    device_taint_rules_count=True,
    config_for_all_names_none=True,
    selector_errors_name_device=True,
    distinct_attribute_compares_all_devices=True,
    post_filter_is_silent=True,
    claim_deletion_helps=True,
)
