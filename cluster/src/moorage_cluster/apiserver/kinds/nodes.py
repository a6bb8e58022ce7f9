"""Nodes: taints, pod networks, and capacity."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest, child
from moorage.apimachinery.fields import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
)
from moorage.apimachinery.validation.checks import repetitions
from moorage.apimachinery.validation.network_addresses import check_network
from moorage.apimachinery.validation.resource_names import check_amount
from moorage.apimachinery.validation.taints import check_taints
from moorage_cluster.apiserver.strategy import Strategy

_SYSTEM_INFO: Final = (
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
)
_POD_CIDR_RULE = 'node updates may not change podCIDR except from "" to valid'
_PROVIDER_RULE = 'node updates may not change providerID except from "" to valid'
_ONE_A_FAMILY = "may specify no more than one CIDR for each IP family"


class NodeStrategy(Strategy):
    """A node; it may be created with a status, as kubelets do."""

    has_status = True

    def default(self, obj: Manifest) -> None:
        """The allocatable resources default to the capacity."""
        spec, status = child(obj, "spec"), child(obj, "status")
        if spec.get("podCIDR") and not spec.get("podCIDRs"):
            spec["podCIDRs"] = [spec["podCIDR"]]
        elif spec.get("podCIDRs") and not spec.get("podCIDR"):
            spec["podCIDR"] = spec["podCIDRs"][0]
        if "capacity" in status and "allocatable" not in status:
            status["allocatable"] = dict(status["capacity"])
        child(child(status, "daemonEndpoints"), "kubeletEndpoint").setdefault("Port", 0)
        info = child(status, "nodeInfo")
        for key in _SYSTEM_INFO:
            info.setdefault(key, "")

    def prepare_create(self, obj: Manifest) -> None:
        """Drop the configuration source, which is no longer supported."""
        obj["spec"].pop("configSource", None)
        obj["status"].pop("config", None)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate taints, resources and pod networks."""
        spec = obj.get("spec") or {}
        errors = check_taints(spec.get("taints") or (), "metadata.taints")
        errors += _check_resources(obj)
        networks = spec.get("podCIDRs") or ()
        for index, network in enumerate(networks):
            errors += check_network(network, f"spec.podCIDRs[{index}]")
        if len(networks) > 2 or len({":" in network for network in networks}) < len(networks):
            errors.append(invalid("spec.podCIDRs", networks, _ONE_A_FAMILY))
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Pod networks and the provider ID are immutable once set."""
        return self.validate(obj) + _check_identity(obj, old)

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Resources are not negative, and addresses are unique."""
        errors = _check_resources(obj)
        addresses = obj.get("status", {}).get("addresses") or ()
        for index in repetitions(frozenset(address.items()) for address in addresses):
            errors.append(duplicate(f"status.addresses[{index}]", addresses[index]))
        return errors + _check_identity(obj, old)

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warn about deprecated fields without effect."""
        spec = obj.get("spec") or {}
        warnings = []
        if "configSource" in spec:
            warnings.append("spec.configSource: the feature is removed")
        if spec.get("externalID"):
            warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        return warnings

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """Selectable by whether they are unschedulable."""
        cordoned = obj.get("spec", {}).get("unschedulable", False)
        return {"spec.unschedulable": "true" if cordoned else "false"}


def _check_resources(obj: Manifest) -> list[FieldError]:
    errors: list[FieldError] = []
    status = obj.get("status") or {}
    for part in ("capacity", "allocatable"):
        for name, quantity in (status.get(part) or {}).items():
            errors += check_amount(name, quantity, f"status.{part}.{name}")
    return errors


def _check_identity(obj: Manifest, old: Manifest) -> list[FieldError]:
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    errors = []
    if before.get("podCIDRs") and spec.get("podCIDRs") != before["podCIDRs"]:
        errors.append(forbidden("spec.podCIDRs", _POD_CIDR_RULE))
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        errors.append(forbidden("spec.providerID", _PROVIDER_RULE))
    if spec.get("externalID", "") != before.get("externalID", ""):
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors
