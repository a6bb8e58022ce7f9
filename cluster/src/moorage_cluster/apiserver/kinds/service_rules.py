"""Validation of services and of their updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import IMMUTABLE, FieldError, duplicate, forbidden, invalid, required
from moorage.apimachinery.validation.checks import check_one_of, check_optional_word
from moorage.apimachinery.validation.metadata import validate_labels
from moorage.apimachinery.validation.names import check_label, check_qualified_name, check_subdomain
from moorage.apimachinery.validation.network_addresses import (
    check_address,
    check_network,
    check_port,
    check_port_or_name,
    check_reachable_address,
)
from moorage_cluster.apiserver.kinds.addresses import HEADLESS

if TYPE_CHECKING:
    from moorage_cluster.apiserver.kinds.addresses import ClusterIPAllocator

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_MAX_AFFINITY_SECONDS = 86400
_ONLY_BALANCERS = "may only be used when `type` is 'LoadBalancer'"
_ONLY_SET_ONCE = "may not change once set"


def needs_health_check(spec: Manifest) -> bool:
    """Whether a load balancer checks the health of the service on every node."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def check_service(obj: Manifest) -> list[FieldError]:
    """Validation errors of a service."""
    spec = obj.get("spec") or {}
    kind = spec.get("type", "")
    headless = spec.get("clusterIP") == HEADLESS
    errors = []
    if not spec.get("ports") and not headless and kind != "ExternalName":
        errors.append(required("spec.ports"))
    errors += _check_type_fields(spec, headless=headless)
    errors += _check_ports(spec)
    errors += validate_labels(spec.get("selector") or {}, "spec.selector")
    errors += _check_affinity(spec)
    if kind != "ExternalName":
        errors += _check_cluster_ips(spec, headless=headless)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        errors += check_address(address, path) or check_reachable_address(address, path)
    errors += check_one_of(kind, _TYPES, "spec.type")
    errors += _check_port_sets(spec)
    errors += _check_balancer(spec)
    errors += _check_traffic(spec)
    return errors


def _check_type_fields(spec: Manifest, *, headless: bool) -> list[FieldError]:
    kind = spec.get("type")
    if kind in ("LoadBalancer", "NodePort"):
        if headless:
            return [invalid("spec.clusterIPs[0]", HEADLESS, f"may not be set to 'None' for {kind} services")]
    elif kind == "ExternalName":
        refused = "may not be set for ExternalName services"
        errors = [
            forbidden(f"spec.{key}", refused)
            for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
            if spec.get(key)
        ]
        name = spec.get("externalName", "").removesuffix(".")
        if not name:
            return [*errors, required("spec.externalName")]
        return errors + check_subdomain(name, "spec.externalName")
    return []


def _check_ports(spec: Manifest) -> list[FieldError]:
    errors: list[FieldError] = []
    ports = spec.get("ports") or ()
    names = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name = port.get("name", "")
        if name:
            errors += check_label(name, f"{path}.name")
            if name in names:
                errors.append(duplicate(f"{path}.name", name))
            names.add(name)
        elif len(ports) > 1:
            errors.append(required(f"{path}.name"))
        errors += check_port(port.get("port", 0), f"{path}.port")
        errors += check_one_of(port.get("protocol", ""), PROTOCOLS, f"{path}.protocol")
        errors += check_port_or_name(port.get("targetPort", 0), f"{path}.targetPort")
        if "appProtocol" in port:
            errors += check_qualified_name(port["appProtocol"], f"{path}.appProtocol")
    return errors


def _check_port_sets(spec: Manifest) -> list[FieldError]:
    errors = []
    node_ports, ports = set(), set()
    clustered = spec.get("type") == "ClusterIP"
    for index, port in enumerate(spec.get("ports") or ()):
        path = f"spec.ports[{index}]"
        protocol, number = port.get("protocol", ""), port.get("nodePort", 0)
        if number:
            if clustered:
                errors.append(forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'"))
            if (protocol, number) in node_ports:
                errors.append(duplicate(f"{path}.nodePort", number))
            node_ports.add((protocol, number))
        if (protocol, port.get("port")) in ports:
            errors.append(duplicate(path, {"port": port.get("port", 0), "protocol": protocol}))
        ports.add((protocol, port.get("port")))
    return errors


def _check_affinity(spec: Manifest) -> list[FieldError]:
    affinity = spec.get("sessionAffinity", "")
    if affinity != "ClientIP":
        return check_one_of(affinity, ("ClientIP", "None"), "spec.sessionAffinity")
    seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds", 0)
    if 0 < seconds <= _MAX_AFFINITY_SECONDS:
        return []
    path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
    return [invalid(path, seconds, f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}")]


def _check_cluster_ips(spec: Manifest, *, headless: bool) -> list[FieldError]:
    path = "spec.clusterIPs"
    address, addresses = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    errors = []
    if address:
        if not addresses:
            errors.append(required(path))
        elif addresses[0] != address:
            errors.append(invalid(path, addresses, "first value must match `clusterIP`"))
    elif addresses:
        errors.append(invalid(path, addresses, "must be empty when `clusterIP` is not specified"))
    errors += _check_families(spec)
    malformed = []
    for index, each in enumerate(addresses):
        if index == 0 and each == HEADLESS:
            if len(addresses) > 1:
                malformed.append(invalid(path, addresses, "'None' must be the first and only value"))
            continue
        malformed += check_address(each, f"{path}[{index}]")
    errors += malformed
    if len(addresses) > 2:
        errors.append(invalid(path, addresses, "may only hold up to 2 values"))
    if malformed or headless:
        return errors
    if len(addresses) > 1 and len({":" in each for each in addresses}) == 1:
        errors.append(invalid(path, addresses, "may specify no more than one IP for each IP family"))
    for index, (each, family) in enumerate(zip(addresses, spec.get("ipFamilies") or (), strict=False)):
        if family in _FAMILIES and (":" in each) != (family == "IPv6"):
            why = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            errors.append(invalid(f"{path}[{index}]", each, why))
    return errors


def _check_families(spec: Manifest) -> list[FieldError]:
    errors = []
    seen = set()
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        errors += check_optional_word(family, _FAMILIES, f"spec.ipFamilies[{index}]")
        if family in seen:
            errors.append(duplicate(f"spec.ipFamilies[{index}]", family))
        seen.add(family)
    if "ipFamilyPolicy" in spec:
        errors += check_optional_word(spec["ipFamilyPolicy"], _FAMILY_POLICIES, "spec.ipFamilyPolicy")
    return errors


def check_family_support(spec: Manifest, addresses: ClusterIPAllocator) -> list[FieldError]:
    """Validation errors of IP families that a cluster with only IPv4 addresses does not support."""
    if spec.get("type") == "ExternalName":
        return []
    if spec.get("clusterIP") == HEADLESS and not spec.get("selector"):
        return []
    policy, families = spec.get("ipFamilyPolicy"), spec.get("ipFamilies") or ()
    errors = []
    if policy == "SingleStack" and len(families) == 2:
        why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"
        errors.append(invalid("spec.ipFamilyPolicy", policy, why))
    if policy == "RequireDualStack":
        why = "this cluster is not configured for dual-stack services"
        errors.append(invalid("spec.ipFamilyPolicy", policy, why))
    ours = f"IPv{addresses.network.version}"
    for index, family in enumerate(families):
        if family != ours:
            errors.append(invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster"))
    return errors


def _check_balancer(spec: Manifest) -> list[FieldError]:
    balanced = spec.get("type") == "LoadBalancer"
    errors = []
    if ranges := spec.get("loadBalancerSourceRanges"):
        path = "spec.LoadBalancerSourceRanges"
        if not balanced:
            errors.append(forbidden(path, _ONLY_BALANCERS))
        for index, text in enumerate(ranges):
            errors += check_network(text.strip(), f"{path}[{index}]")
    if not balanced:
        errors += [
            forbidden(f"spec.{key}", _ONLY_BALANCERS)
            for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass")
            if key in spec
        ]
    elif "loadBalancerClass" in spec:
        errors += check_qualified_name(spec["loadBalancerClass"], "spec.loadBalancerClass")
    return errors


def _check_traffic(spec: Manifest) -> list[FieldError]:
    errors = []
    kind, policy = spec.get("type"), spec.get("externalTrafficPolicy", "")
    external = kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if external:
        errors += check_one_of(policy, ("Cluster", "Local"), "spec.externalTrafficPolicy")
    elif policy:
        why = "may only be set for externally-accessible services"
        errors.append(invalid("spec.externalTrafficPolicy", policy, why))
    number = spec.get("healthCheckNodePort", 0)
    if number and needs_health_check(spec):
        errors += check_port(number, "spec.healthCheckNodePort")
    elif number:
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(invalid("spec.healthCheckNodePort", number, why))
    if "internalTrafficPolicy" in spec:
        policy = spec["internalTrafficPolicy"]
        errors += check_optional_word(policy, ("Cluster", "Local"), "spec.internalTrafficPolicy")
    if "trafficDistribution" in spec:
        distribution = spec["trafficDistribution"]
        errors += check_optional_word(distribution, _DISTRIBUTIONS, "spec.trafficDistribution")
    return errors


def check_service_change(obj: Manifest, old: Manifest) -> list[FieldError]:
    """Validation errors of immutable fields of a service."""
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    errors = []
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        errors += _check_address_change(spec, before)
    if spec.get("type") == before.get("type") == "LoadBalancer":
        wanted = spec.get("loadBalancerClass")
        if wanted != before.get("loadBalancerClass"):
            errors.append(invalid("spec.loadBalancerClass", wanted, _ONLY_SET_ONCE))
    if (
        needs_health_check(spec)
        and needs_health_check(before)
        and spec.get("healthCheckNodePort", 0) != before.get("healthCheckNodePort", 0)
    ):
        errors.append(forbidden("spec.healthCheckNodePort", IMMUTABLE))
    return errors


def _check_address_change(spec: Manifest, before: Manifest) -> list[FieldError]:
    if spec.get("clusterIP") == before.get("clusterIP") == HEADLESS:
        return []
    had, wanted = before.get("clusterIPs") or [], spec.get("clusterIPs") or []
    if had and not wanted:
        return [invalid("spec.clusterIPs[0]", wanted, "primary clusterIP can not be unset")]
    errors = []
    if had and wanted[0] != had[0]:
        errors.append(invalid("spec.clusterIPs[0]", wanted, _ONLY_SET_ONCE))
    families, wanted_families = before.get("ipFamilies") or [], spec.get("ipFamilies") or []
    headless = HEADLESS in (spec.get("clusterIP"), before.get("clusterIP"))
    if not headless and families and wanted_families and families[0] != wanted_families[0]:
        errors.append(invalid("spec.ipFamilies[0]", wanted_families, _ONLY_SET_ONCE))
    return errors
