"""EndpointSlices: some of the addresses behind a service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Final

from moorage.api.manifests import Manifest, child, labels_of
from moorage.api.names import dns_label_problems, dns_subdomain_problems, qualified_name_problems
from moorage.apimachinery.fields import FieldError, complaints, duplicate, invalid, required, too_many
from moorage.apimachinery.validation.checks import check_one_of, check_optional_word, check_unchanged
from moorage.apimachinery.validation.names import check_label, check_label_value, check_subdomain
from moorage.apimachinery.validation.network_addresses import check_address, check_reachable_address
from moorage_cluster.apiserver.kinds.service_rules import PROTOCOLS
from moorage_cluster.apiserver.strategy import Strategy

_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")
_MAX_ENDPOINTS: Final = 1000
_MAX_PORTS: Final = 20000
_MAX_ADDRESSES: Final = 100
_MAX_HINTS: Final = 8


class EndpointSliceStrategy(Strategy):
    """An EndpointSlice."""

    has_generation = True

    def default(self, obj: Manifest) -> None:
        """Ports have a name, which may be empty, and are TCP."""
        for endpoint in obj.setdefault("endpoints", []):
            child(endpoint, "conditions")
        for port in obj.setdefault("ports", []):
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def prepare_create(self, obj: Manifest) -> None:
        """The deprecated topology cannot be written."""
        super().prepare_create(obj)
        _drop_topology(obj)

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """A change of labels increments the generation too."""
        _drop_topology(obj)
        super().prepare_update(obj, old)
        before = old["metadata"].get("generation", 0)
        if labels_of(obj) != labels_of(old):
            obj["metadata"]["generation"] = before + 1

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Addresses match the slice's type, and ports are valid."""
        kind = obj.get("addressType", "")
        errors = check_one_of(kind, _ADDRESS_TYPES, "addressType")
        errors += _check_ports(obj["ports"])
        return errors + _check_endpoints(obj["endpoints"], kind)

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The address type is immutable."""
        same = check_unchanged(obj.get("addressType", ""), old.get("addressType", ""), "addressType")
        return self.validate(obj) + same

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warn about the deprecated address type FQDN."""
        deprecated = old is None and obj.get("addressType") == "FQDN"
        return ["spec.addressType: FQDN endpoints are deprecated"] if deprecated else []


def _drop_topology(obj: Manifest) -> None:
    for endpoint in obj["endpoints"]:
        endpoint.pop("deprecatedTopology", None)


def _check_endpoints(endpoints: Sequence[Manifest], kind: str) -> list[FieldError]:
    if len(endpoints) > _MAX_ENDPOINTS:
        return [too_many("endpoints", len(endpoints), _MAX_ENDPOINTS)]
    errors: list[FieldError] = []
    for index, endpoint in enumerate(endpoints):
        path = f"endpoints[{index}]"
        errors += _check_addresses(endpoint.get("addresses") or (), kind, f"{path}.addresses")
        if "nodeName" in endpoint:
            errors += check_subdomain(endpoint["nodeName"], f"{path}.nodeName")
        if "hostname" in endpoint:
            errors += check_label(endpoint["hostname"], f"{path}.hostname")
        hints = endpoint.get("hints") or {}
        errors += _check_hints(hints.get("forZones") or (), check_label_value, f"{path}.hints.forZones")
        errors += _check_hints(hints.get("forNodes") or (), check_subdomain, f"{path}.hints.forNodes")
    return errors


def _check_addresses(addresses: Sequence[str], kind: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not addresses:
        errors.append(required(path, "must contain at least 1 address"))
    if len(addresses) > _MAX_ADDRESSES:
        errors.append(too_many(path, len(addresses), _MAX_ADDRESSES))
    for index, address in enumerate(addresses):
        here = f"{path}[{index}]"
        if kind == "FQDN":
            errors += _check_domain(address, here)
        elif kind in _ADDRESS_TYPES:
            errors += check_address(address, here) or _check_family(address, kind, path, here)
    return errors


def _check_family(address: str, kind: str, path: str, here: str) -> list[FieldError]:
    is_of_kind = f"IPv{ip_address(address).version}" == kind
    errors = [] if is_of_kind else [invalid(path, address, f"must be an {kind} address")]
    return errors + check_reachable_address(address, here)


def _check_domain(name: str, path: str) -> list[FieldError]:
    """A domain of at least two labels; a trailing dot is allowed."""
    if not name:
        return [required(path)]
    name = name.removesuffix(".")
    if problems := dns_subdomain_problems(name):
        return [invalid(path, name, ",".join(problems))]
    labels = name.split(".")
    if len(labels) < 2:
        return [invalid(path, name, "should be a domain with at least two segments separated by dots")]
    wrong = next((label for label in labels if dns_label_problems(label)), None)
    return [] if wrong is None else [invalid(path, wrong, ",".join(dns_label_problems(wrong)))]


def _check_ports(ports: Sequence[Manifest]) -> list[FieldError]:
    if len(ports) > _MAX_PORTS:
        return [too_many("ports", len(ports), _MAX_PORTS)]
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port["name"]
        if name:
            errors += check_label(name, f"{path}.name")
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
        errors += check_optional_word(port["protocol"], PROTOCOLS, f"{path}.protocol")
        if "appProtocol" in port:
            application = port["appProtocol"]
            errors += complaints(f"{path}.appProtocol", application, qualified_name_problems(application))
    return errors


def _check_hints(
    hints: Sequence[Manifest], check: Callable[[str, str], list[FieldError]], path: str
) -> list[FieldError]:
    if len(hints) > _MAX_HINTS:
        return [too_many(path, len(hints), _MAX_HINTS)]
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, hint in enumerate(hints):
        here, name = f"{path}[{index}].name", hint.get("name", "")
        if name in names:
            errors.append(duplicate(here, name))
        names.add(name)
        errors += check(name, here)
    return errors
