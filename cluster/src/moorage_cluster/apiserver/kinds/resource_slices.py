"""ResourceSlices: the devices that drivers publish."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from moorage.api.manifests import Manifest, Now, child, utc_now
from moorage.api.names import is_native_resource
from moorage.api.quantity import parse_quantity
from moorage.api.text_cache import cached_by_text
from moorage.apimachinery.fields import (
    NOT_POSITIVE,
    FieldError,
    forbidden,
    invalid,
    not_found,
    required,
    too_long,
    too_many,
)
from moorage.apimachinery.validation.checks import check_driver_name, check_set, check_unchanged
from moorage.apimachinery.validation.names import (
    check_label,
    check_subdomain,
)
from moorage.apimachinery.validation.selectors import check_node_selector
from moorage_cluster.apiserver.kinds.device_requests import check_device_name
from moorage_cluster.apiserver.kinds.device_taints import check_taint, default_taint
from moorage_cluster.apiserver.kinds.resource_claims import check_pool_name
from moorage_cluster.apiserver.strategy import Strategy

_MAX_DEVICES: Final = 128
_MAX_ADVANCED_DEVICES: Final = 64
_MAX_COUNTER_SETS: Final = 8
_MAX_COUNTERS: Final = 32
_MAX_CONSUMPTIONS: Final = 2
_MAX_TAINTS: Final = 16
_MAX_ATTRIBUTES: Final = 32
_MAX_VALUES: Final = 48
_MAX_VALUE_LENGTH: Final = 64
_SINGLE: Final = ("bool", "int", "string", "version")
_SEVERAL: Final = ("bools", "ints", "strings", "versions")
_NUMBER = r"(0|[1-9]\d*)"
_PRE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = r"[0-9a-zA-Z-]+"
_VERSION_RE = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRE}(\.{_PRE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
)
_ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_ONE_DEVICE_PLACE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is "
    "set to true in the ResourceSlice spec"
)
_NO_DEVICE_PLACE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
    "the ResourceSlice spec"
)


class ResourceSliceStrategy(Strategy):
    """A ResourceSlice."""

    has_generation = True

    def __init__(self, now: Now = utc_now) -> None:
        self._now = now

    def default(self, obj: Manifest) -> None:
        """Set the time at which taints were added, and the multipliers of resource mappings."""
        for device in child(obj, "spec").get("devices") or ():
            for taint in device.get("taints") or ():
                default_taint(taint, self._now)
            for mapping in (device.get("nodeAllocatableResourceMappings") or {}).values():
                mapping.setdefault("allocationMultiplier", "1")

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the pool, the node and the devices."""
        return _check_slice(obj["spec"], None)

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The driver, the pool's name and the node's name are immutable."""
        spec, before = obj["spec"], old.get("spec") or {}
        errors = _check_slice(spec, before)
        names = (spec.get("pool") or {}).get("name", ""), (before.get("pool") or {}).get("name", "")
        errors += check_unchanged(*names, "spec.pool.name")
        for key in ("driver", "nodeName"):
            errors += check_unchanged(spec.get(key), before.get(key), f"spec.{key}")
        return errors

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """Selectable by node and driver."""
        spec = obj.get("spec") or {}
        return {"spec.nodeName": spec.get("nodeName", ""), "spec.driver": spec.get("driver", "")}


def _check_slice(spec: Manifest, before: Manifest | None) -> list[FieldError]:
    errors = check_driver_name(spec.get("driver", ""), "spec.driver")
    errors += _check_pool(spec.get("pool") or {}, "spec.pool")
    places = _places(spec, ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"), "spec", errors)
    if "nodeSelector" in spec and len(spec["nodeSelector"].get("nodeSelectorTerms") or ()) != 1:
        terms = spec["nodeSelector"].get("nodeSelectorTerms")
        why = "must have exactly one node selector term"
        errors.append(invalid("spec.nodeSelector.nodeSelectorTerms", terms, why))
    if not places:
        errors.append(required("spec", _ONE_PLACE))
    elif len(places) > 1:
        why = f"{_ONE_PLACE}, but multiple fields are set"
        errors.append(invalid("spec", f"{{{', '.join(places)}}}", why))
    if "sharedCounters" in spec and "devices" in spec:
        errors.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    devices = spec.get("devices") or []
    most = _MAX_ADVANCED_DEVICES if any(map(_is_advanced, devices)) else _MAX_DEVICES
    if len(devices) <= most:
        had = {device.get("name"): device for device in (before or {}).get("devices") or ()}
        for index, device in enumerate(devices):
            if device != had.get(device.get("name")):
                own_place = bool(spec.get("perDeviceNodeSelection"))
                errors += _check_device(device, f"spec.devices[{index}]", own_place=own_place)
    errors += check_set(devices, most, _name_of, "spec.devices")
    return errors + _check_counter_sets(spec.get("sharedCounters") or [], "spec.sharedCounters")


def _name_of(item: Manifest) -> str:
    name: str = item.get("name", "")
    return name


def _is_advanced(device: Manifest) -> bool:
    if device.get("taints") or device.get("consumesCounters"):
        return True
    return any(key in value for value in (device.get("attributes") or {}).values() for key in _SEVERAL)


def _check_pool(pool: Manifest, path: str) -> list[FieldError]:
    errors = check_pool_name(pool.get("name", ""), f"{path}.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        errors.append(invalid(f"{path}.resourceSliceCount", count, NOT_POSITIVE))
    if generation < 0:
        why = "must be greater than or equal to zero"
        errors.append(invalid(f"{path}.generation", generation, why))
    return errors


def _places(holder: Manifest, keys: Sequence[str], path: str, errors: list[FieldError]) -> list[str]:
    """The fields by which a slice or device specifies its nodes; their problems are added to `errors`."""
    places = []
    for key in keys:
        if key not in holder:
            continue
        value, here = holder[key], f"{path}.{key}"
        if key == "nodeName":
            if not value:
                nowhere = "must be either unset or set to a non-empty string"
                errors.append(invalid(here, value, nowhere if path == "spec" else "must not be empty"))
                continue
            errors += check_subdomain(value, here)
        elif key == "nodeSelector":
            errors += check_node_selector(value, here)
        elif not value:
            errors.append(invalid(here, value, "must be either unset or set to true"))
            continue
        places.append(f"`{key}`")
    return places


def _check_device(device: Manifest, path: str, *, own_place: bool) -> list[FieldError]:
    errors = check_label(device.get("name", ""), f"{path}.name")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > _MAX_ATTRIBUTES:
        why = f"the total number of attributes and capacities must not exceed {_MAX_ATTRIBUTES}"
        errors.append(invalid(path, len(attributes) + len(capacity), why))
    values = sum(map(_count_values, attributes.values()))
    if values > _MAX_VALUES:
        why = f"the total number of attribute values must not exceed {_MAX_VALUES}"
        errors.append(invalid(path, values, why))
    for name, attribute in attributes.items():
        errors += check_device_name(name, f"{path}.attributes")
        errors += _check_attribute(attribute, f"{path}.attributes[{name}]")
    shared = bool(device.get("allowMultipleAllocations"))
    for name, amount in capacity.items():
        errors += check_device_name(name, f"{path}.capacity")
        if "requestPolicy" in amount and not shared:
            why = "allowMultipleAllocations must be true"
            errors.append(forbidden(f"{path}.capacity[{name}].requestPolicy", why))
    errors += _check_taints(device.get("taints") or [], f"{path}.taints")
    errors += _check_consumptions(device.get("consumesCounters") or [], f"{path}.consumesCounters")
    errors += _check_device_place(device, path, own_place=own_place)
    mappings = device.get("nodeAllocatableResourceMappings") or {}
    return errors + _check_mappings(mappings, capacity, f"{path}.nodeAllocatableResourceMappings")


def _check_device_place(device: Manifest, path: str, *, own_place: bool) -> list[FieldError]:
    keys = ("nodeName", "nodeSelector", "allNodes")
    if not own_place:
        return [invalid(path, None, _NO_DEVICE_PLACE)] if any(key in device for key in keys) else []
    errors: list[FieldError] = []
    places = _places(device, keys, path, errors)
    if not places:
        errors.append(required(path, _ONE_DEVICE_PLACE))
    elif len(places) > 1:
        errors.append(invalid(path, f"{{{', '.join(places)}}}", _ONE_DEVICE_PLACE))
    return errors


def _count_values(attribute: Manifest) -> int:
    return sum(len(attribute.get(key) or ()) for key in _SEVERAL) or 1


def _check_attribute(attribute: Manifest, path: str) -> list[FieldError]:
    given = [key for key in (*_SINGLE, *_SEVERAL) if key in attribute]
    errors: list[FieldError] = []
    for key in given:
        value, here = attribute[key], f"{path}.{key}"
        if key in _SEVERAL and not value:
            errors.append(invalid(here, value, "must not be empty if specified"))
        check = _VALUE_CHECKS.get(key.removesuffix("s"))
        if check is not None:
            items = [(here, value)]
            if key in _SEVERAL:
                items = [(f"{here}[{index}]", item) for index, item in enumerate(value)]
            for place, item in items:
                errors += check(item, place)
    if len(given) != 1:
        errors.append(invalid(path, attribute if given else "", "exactly one value must be specified"))
    return errors


def _check_text(value: str, path: str) -> list[FieldError]:
    return [too_long(path, _MAX_VALUE_LENGTH)] if len(value.encode()) > _MAX_VALUE_LENGTH else []


@cached_by_text(count=4096)
def _is_version(value: str) -> bool:
    return _VERSION_RE.fullmatch(value) is not None


def _check_version(value: str, path: str) -> list[FieldError]:
    why = "must be a string compatible with semver.org spec 2.0.0"
    errors = [] if _is_version(value) else [invalid(path, value, why)]
    return errors + _check_text(value, path)


_VALUE_CHECKS: Final[Mapping[str, Callable[[Any, str], list[FieldError]]]] = {
    "string": _check_text,
    "version": _check_version,
}


def _check_taints(taints: Sequence[Manifest], path: str) -> list[FieldError]:
    if len(taints) > _MAX_TAINTS:
        return [too_many(path, len(taints), _MAX_TAINTS)]
    errors: list[FieldError] = []
    for index, taint in enumerate(taints):
        errors += check_taint(taint, f"{path}[{index}]")
    return errors


def _check_counters(counters: Mapping[str, Any], path: str) -> list[FieldError]:
    if not counters:
        return [required(path)]
    if len(counters) > _MAX_COUNTERS:
        return [too_many(path, len(counters), _MAX_COUNTERS)]
    errors: list[FieldError] = []
    for name in counters:
        errors += check_label(name, path)
    return errors


def _check_counter_sets(sets: Sequence[Manifest], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(sets) <= _MAX_COUNTER_SETS:
        for index, counters in enumerate(sets):
            name, here = _name_of(counters), f"{path}[{index}]"
            errors += check_label(name, f"{here}.name") if name else [required(f"{here}.name")]
            errors += _check_counters(counters.get("counters") or {}, f"{here}.counters")
    return errors + check_set(sets, _MAX_COUNTER_SETS, _name_of, path)


def _check_consumptions(consumptions: Sequence[Manifest], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(consumptions) <= _MAX_CONSUMPTIONS:
        for index, consumption in enumerate(consumptions):
            name, here = consumption.get("counterSet", ""), f"{path}[{index}]"
            where = f"{here}.counterSet"
            errors += check_label(name, where) if name else [required(where)]
            errors += _check_counters(consumption.get("counters") or {}, f"{here}.counters")
    return errors + check_set(consumptions, _MAX_CONSUMPTIONS, lambda each: each.get("counterSet", ""), path)


def _check_mappings(mappings: Mapping[str, Manifest], capacity: Manifest, path: str) -> list[FieldError]:
    errors = []
    for name, mapping in mappings.items():
        here = f"{path}[{name}]"
        if not is_native_resource(name):
            errors.append(invalid(here, name, "must be a node allocatable resource name"))
        multiplier, key = mapping.get("allocationMultiplier", "1"), mapping.get("capacityKey")
        if parse_quantity(multiplier) <= 0:
            errors.append(invalid(f"{here}.allocationMultiplier", multiplier, "must be positive"))
        if key == "":
            errors.append(invalid(f"{here}.capacityKey", "", "capacityKey must not be an empty string"))
        elif key is not None and key not in capacity:
            errors.append(not_found(f"{here}.capacityKey", key))
    return errors
