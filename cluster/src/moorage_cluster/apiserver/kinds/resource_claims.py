"""ResourceClaims, their templates, and DeviceClasses: requested and allocated devices."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, child, labels_of
from moorage.api.names import is_extended_resource
from moorage.apimachinery.fields import FieldError, forbidden, invalid, required, too_long, too_many
from moorage.apimachinery.validation.checks import check_driver_name, check_set, check_unchanged
from moorage.apimachinery.validation.metadata import validate_labels
from moorage.apimachinery.validation.names import check_label, check_subdomain
from moorage.apimachinery.validation.selectors import check_node_selector
from moorage_cluster.apiserver.kinds.base import StatusStrategy, keep_metadata
from moorage_cluster.apiserver.kinds.device_requests import (
    SelectorChecks,
    check_configs,
    check_device_claim,
    check_name_reference,
    check_parameters,
    default_device_claim,
    request_names,
)
from moorage_cluster.apiserver.strategy import Strategy

_MAX_CONSUMERS: Final = 256
_MAX_RESULTS: Final = 32
_MAX_CONFIGS: Final = 32
_MAX_DEVICE_CONDITIONS: Final = 8
_MAX_DEVICE_ADDRESSES: Final = 16


class ResourceClaimStrategy(StatusStrategy):
    """A ResourceClaim."""

    def default(self, obj: Manifest) -> None:
        """A request is for exactly one device."""
        super().default(obj)
        default_device_claim(child(obj["spec"], "devices"))

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Keep the metadata in status updates; the status of a device is dropped with its allocation."""
        super().prepare_status(obj, old)
        keep_metadata(obj, old)
        _drop_deallocated(child(obj, "status"), old.get("status") or {})

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the requests."""
        return check_device_claim(obj["spec"].get("devices") or {}, "spec.devices")

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The spec is immutable."""
        return check_unchanged(obj.get("spec"), old.get("spec"), "spec")

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The allocation matches the requests, and is immutable while it exists."""
        status, before = obj.get("status") or {}, old.get("status") or {}
        errors = _check_consumers(obj, status, before)
        allocation = status.get("allocation")
        errors += _check_device_statuses(status, "status.devices")
        if allocation is None:
            return errors
        if "allocation" in before:
            return errors + check_unchanged(allocation, before["allocation"], "status.allocation")
        names = request_names((obj.get("spec") or {}).get("devices") or {})
        return errors + _check_allocation(allocation, names, "status.allocation")


class ResourceClaimTemplateStrategy(Strategy):
    """A ResourceClaimTemplate."""

    def default(self, obj: Manifest) -> None:
        """A request is for exactly one device."""
        spec = child(obj, "spec")
        child(spec, "metadata")
        default_device_claim(child(child(spec, "spec"), "devices"))

    def validate(self, obj: Manifest) -> list[FieldError]:
        """A claim created from it would be valid."""
        spec = obj["spec"]
        errors = validate_labels(labels_of(spec), "spec.metadata.labels")
        claim = (spec.get("spec") or {}).get("devices") or {}
        return errors + check_device_claim(claim, "spec.spec.devices")

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The spec is immutable."""
        return check_unchanged(obj.get("spec"), old.get("spec"), "spec")


class DeviceClassStrategy(Strategy):
    """A DeviceClass."""

    has_generation = True

    def default(self, obj: Manifest) -> None:
        """Add an empty spec if it is missing."""
        obj.setdefault("spec", {})

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the selectors and the configuration."""
        spec = obj["spec"]
        errors = SelectorChecks().check(spec.get("selectors") or [], "spec.selectors")
        errors += check_configs(spec.get("config") or [], None, "spec.config")
        name = spec.get("extendedResourceName")
        if name is not None and not is_extended_resource(name):
            why = "must be a valid extended resource name"
            errors.append(invalid("spec.extendedResourceName", name, why))
        return errors


def check_pool_name(name: str, path: str) -> list[FieldError]:
    """The name of a pool of devices: one or more subdomains."""
    if not name:
        return [required(path)]
    errors: list[FieldError] = []
    for part in name.split("/"):
        errors += check_subdomain(part, path)
    return errors


def _device_key(device: Manifest) -> tuple[str, str, str, str]:
    driver, pool = device.get("driver", ""), device.get("pool", "")
    return driver, pool, device.get("device", ""), device.get("shareID", "")


def _allocated(status: Manifest) -> set[tuple[str, str, str, str]]:
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return {_device_key(result) for result in results}


def _drop_deallocated(status: Manifest, before: Manifest) -> None:
    if not status.get("devices"):
        return
    gone = _allocated(before) - _allocated(status)
    left = [device for device in status["devices"] if _device_key(device) not in gone]
    if left:
        status["devices"] = left
    else:
        del status["devices"]


def _check_consumers(obj: Manifest, status: Manifest, before: Manifest) -> list[FieldError]:
    path, consumers = "status.reservedFor", status.get("reservedFor") or []
    errors = check_set(consumers, _MAX_CONSUMERS, lambda each: each.get("uid", ""), path)
    for index, consumer in enumerate(consumers[:_MAX_CONSUMERS]):
        errors += [
            required(f"{path}[{index}].{key}") for key in ("resource", "name", "uid") if not consumer.get(key)
        ]
    if not consumers:
        return errors
    if "allocation" not in status:
        errors.append(forbidden(path, "may not be specified when `allocated` is not set"))
    elif obj["metadata"].get("deletionTimestamp"):
        had = before.get("reservedFor") or ()
        if any(consumer not in had for consumer in consumers[:_MAX_CONSUMERS]):
            why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            errors.append(forbidden(path, why))
    return errors


def _check_device_statuses(status: Manifest, path: str) -> list[FieldError]:
    devices = status.get("devices") or []
    allocated = _allocated(status)
    errors = check_set(devices, len(devices), _device_key, path)
    for index, device in enumerate(devices):
        here = f"{path}[{index}]"
        errors += _check_device_id(device, here)
        if _device_key(device) not in allocated:
            named = {key: device.get(key, "") for key in ("driver", "pool", "device")}
            errors.append(invalid(here, named, "must be an allocated device in the claim"))
        conditions = device.get("conditions") or []
        if len(conditions) > _MAX_DEVICE_CONDITIONS:
            errors.append(too_many(f"{here}.conditions", len(conditions), _MAX_DEVICE_CONDITIONS))
        if device.get("data") is not None:
            errors += check_parameters(device["data"], f"{here}.data")
        errors += _check_network_data(device.get("networkData") or {}, f"{here}.networkData")
    return errors


def _check_network_data(data: Manifest, path: str) -> list[FieldError]:
    errors = [
        too_long(f"{path}.{key}", most)
        for key, most in (("interfaceName", 256), ("hardwareAddress", 128))
        if len(data.get(key, "").encode()) > most
    ]
    return errors + check_set(data.get("ips") or [], _MAX_DEVICE_ADDRESSES, str, f"{path}.ips")


def _check_device_id(device: Manifest, path: str) -> list[FieldError]:
    errors = check_driver_name(device.get("driver", ""), f"{path}.driver")
    errors += check_pool_name(device.get("pool", ""), f"{path}.pool")
    return errors + check_label(device.get("device", ""), f"{path}.device")


def _check_allocation(allocation: Manifest, names: dict[str, set[str]], path: str) -> list[FieldError]:
    devices = allocation.get("devices") or {}
    results, configs = devices.get("results") or [], devices.get("config") or []
    here = f"{path}.devices.results"
    errors: list[FieldError] = []
    if len(results) > _MAX_RESULTS:
        errors.append(too_many(here, len(results), _MAX_RESULTS))
    else:
        for index, result in enumerate(results):
            errors += check_name_reference(result.get("request", ""), names, f"{here}[{index}].request")
            errors += _check_device_id(result, f"{here}[{index}]")
    if len(configs) > 2 * _MAX_CONFIGS:
        errors.append(too_many(f"{path}.devices.config", len(configs), 2 * _MAX_CONFIGS))
    if "nodeSelector" in allocation:
        errors += check_node_selector(allocation["nodeSelector"], f"{path}.nodeSelector")
    return errors
