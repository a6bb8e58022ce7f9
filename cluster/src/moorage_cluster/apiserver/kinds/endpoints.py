"""Endpoints: the addresses behind a service."""

from __future__ import annotations

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import FieldError, required
from moorage.apimachinery.validation.checks import check_one_of
from moorage.apimachinery.validation.names import check_label, check_qualified_name, check_subdomain
from moorage.apimachinery.validation.network_addresses import (
    check_address,
    check_port,
    check_reachable_address,
)
from moorage_cluster.apiserver.kinds.service_rules import PROTOCOLS
from moorage_cluster.apiserver.strategy import Strategy


class EndpointsStrategy(Strategy):
    """Endpoints, the predecessor of EndpointSlices."""

    allows_create_on_update = True

    def default(self, obj: Manifest) -> None:
        """Ports are TCP."""
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                if not port.get("protocol"):
                    port["protocol"] = "TCP"

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Addresses can receive traffic, and ports are valid."""
        errors: list[FieldError] = []
        for index, subset in enumerate(obj.get("subsets") or ()):
            path = f"subsets[{index}]"
            if not subset.get("addresses") and not subset.get("notReadyAddresses"):
                errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
            for part in ("addresses", "notReadyAddresses"):
                for place, address in enumerate(subset.get(part) or ()):
                    errors += _check_endpoint(address, f"{path}.{part}[{place}]")
            ports = subset.get("ports") or ()
            for place, port in enumerate(ports):
                errors += _check_port(port, f"{path}.ports[{place}]", named=len(ports) > 1)
        return errors


def _check_endpoint(endpoint: Manifest, path: str) -> list[FieldError]:
    address = endpoint.get("ip", "")
    errors = check_address(address, f"{path}.ip")
    if endpoint.get("hostname"):
        errors += check_label(endpoint["hostname"], f"{path}.hostname")
    if "nodeName" in endpoint:
        name = endpoint["nodeName"]
        errors += check_subdomain(name, f"{path}.nodeName")
    return errors + check_reachable_address(address, f"{path}.ip")


def _check_port(port: Manifest, path: str, *, named: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if port.get("name"):
        errors += check_label(port["name"], f"{path}.name")
    elif named:
        errors.append(required(f"{path}.name"))
    errors += check_port(port.get("port", 0), f"{path}.port")
    errors += check_one_of(port.get("protocol", ""), PROTOCOLS, f"{path}.protocol")
    if "appProtocol" in port:
        errors += check_qualified_name(port["appProtocol"], f"{path}.appProtocol")
    return errors
