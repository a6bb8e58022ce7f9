"""The usage that one object of a kind adds to a quota."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from moorage.api.amounts import ONE, ZERO, Amount, Amounts, add_to, amount_of, raise_to, whole
from moorage.api.manifests import Manifest
from moorage.api.persistent_volumes import class_of
from moorage.api.quantity import NANO, round_up
from moorage.api.text import qualified
from moorage_cluster.apiserver.admission.quota.scopes import Scope, claim_in_scope, no_scope

_COUNT: Final = "count/"
_ALIASES: Final = {
    f"/{plural}": plural for plural in ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
}
"""Kinds with a legacy resource name of their own, from before `count/` applied to every kind."""

_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
_DEVICE_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_MAX_DEVICES: Final = 32
"""Maximum number of devices of a claim that requests all devices."""


def _nothing_missing(names: list[str], obj: Manifest) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Meter:
    """How the usage of objects of one kind is measured."""

    storage: str
    measures: Callable[[str], bool]
    """Whether a quota's resource applies to this kind."""
    charge: Callable[[Manifest, datetime], Amounts]
    """An object's current usage, by the quota's resources."""
    in_scope: Callable[[Scope, Manifest], bool] = no_scope
    missing: Callable[[list[str], Manifest], str] = _nothing_missing
    """What an object must specify, but does not, where these resources are limited; or empty."""


def count_name(storage: str) -> str:
    """The name under which a quota counts the objects of a kind: `count/deployments.apps`."""
    group, _, plural = storage.partition("/")
    return _COUNT + qualified(plural, group)


def counted_storage(name: str) -> str | None:
    """The kind that a quota's resource counts, if it counts one."""
    if name.startswith(_COUNT):
        plural, _, group = name.removeprefix(_COUNT).partition(".")
        return f"{group}/{plural}"
    alias = f"/{name}"
    return alias if alias in _ALIASES else None


def count_meter(storage: str) -> Meter:
    """The meter of a kind for which quotas only count objects."""
    names = {count_name(storage)}
    if storage in _ALIASES:
        names.add(_ALIASES[storage])
    usage = dict.fromkeys(names, ONE)
    return Meter(storage, names.__contains__, lambda obj, now: usage)


_SERVICES: Final = "/services"
_SERVICE_NAMES: Final = frozenset(
    (count_name(_SERVICES), "services", "services.nodeports", "services.loadbalancers")
)


def _service_charge(service: Manifest, now: datetime) -> Amounts:
    spec = service.get("spec", {})
    ports = spec.get("ports") or ()
    node_ports, balancers = 0, 0
    match spec.get("type"):
        case "NodePort":
            node_ports = len(ports)
        case "LoadBalancer":
            balancers = 1
            # Node ports are allocated only later, so ports that will get one are counted.
            allocates = spec.get("allocateLoadBalancerNodePorts", True)
            node_ports = sum(1 for port in ports if allocates or port.get("nodePort"))
    return {
        count_name(_SERVICES): ONE,
        "services": ONE,
        "services.nodeports": whole(node_ports),
        "services.loadbalancers": whole(balancers),
    }


SERVICES: Final = Meter(_SERVICES, _SERVICE_NAMES.__contains__, _service_charge)

_CLAIMS: Final = "/persistentvolumeclaims"
_CLAIM_NAMES: Final = ("persistentvolumeclaims", "requests.storage")
_CLAIM_CLASS_NAMES: Final = tuple(_STORAGE_CLASS + name for name in _CLAIM_NAMES)


def _measures_claims(name: str) -> bool:
    return name == count_name(_CLAIMS) or name in _CLAIM_NAMES or name.endswith(_CLAIM_CLASS_NAMES)


def _claim_charge(claim: Manifest, now: datetime) -> Amounts:
    usage: Amounts = {count_name(_CLAIMS): ONE, "persistentvolumeclaims": ONE}
    requests = claim.get("spec", {}).get("resources", {}).get("requests") or {}
    if "storage" in requests:
        usage["requests.storage"] = _storage(claim, requests["storage"])
    if storage_class := class_of(claim):
        for name in _CLAIM_NAMES:
            if name in usage:
                usage[storage_class + _STORAGE_CLASS + name] = usage[name]
    return usage


def _storage(claim: Manifest, requested: str) -> Amount:
    """The requested size, or the allocated one if that is larger, in whole bytes."""
    sizes = {"": amount_of(requested)}
    allocated = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")
    if allocated is not None:
        raise_to(sizes, {"": amount_of(allocated)})
    size = sizes[""]
    return Amount(round_up(size.billionths, NANO) * NANO, size.style)


CLAIMS: Final = Meter(_CLAIMS, _measures_claims, _claim_charge, claim_in_scope)

_DEVICE_CLAIMS: Final = "resource.k8s.io/resourceclaims"


def _measures_device_claims(name: str) -> bool:
    return name == count_name(_DEVICE_CLAIMS) or name.endswith(_DEVICE_CLASS)


def _device_claim_charge(claim: Manifest, now: datetime) -> Amounts:
    usage: Amounts = {count_name(_DEVICE_CLAIMS): ONE}
    for request in claim.get("spec", {}).get("devices", {}).get("requests") or ():
        choices = request.get("firstAvailable") or ([request["exactly"]] if "exactly" in request else ())
        worst: Amounts = {}
        for choice in choices:
            raise_to(worst, {choice["deviceClassName"] + _DEVICE_CLASS: _devices(choice)})
        add_to(usage, worst)
    return usage


def _devices(request: Manifest) -> Amount:
    match request.get("allocationMode"):
        case "ExactCount":
            return whole(request.get("count", 0))
        case "All":
            return whole(_MAX_DEVICES)
    return ZERO


DEVICE_CLAIMS: Final = Meter(_DEVICE_CLAIMS, _measures_device_claims, _device_claim_charge)
