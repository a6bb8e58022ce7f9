"""The small kinds of the core group: namespaces, services, configuration, quotas."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.tables.base import NAME_AND_AGE, Printer
from moorage_cluster.apiserver.tables.cells import (
    NONE,
    UNKNOWN,
    comma_separated,
    items,
    labels_cell,
    mapping,
    number,
    text,
    texts,
)
from moorage_cluster.apiserver.tables.columns import (
    AGED,
    NAME_AND_CREATION,
    NAMED,
    Columns,
    derived,
    size_of,
    text_at,
)

_SHOWN_ENDPOINTS = 3


def _cluster_ip(service: Manifest) -> str:
    ips = texts(service, "spec", "clusterIPs")
    return ips[0] if ips else NONE


def _external_ip(service: Manifest) -> str:
    external = texts(service, "spec", "externalIPs")
    match text(service, "spec", "type"):
        case "ClusterIP" | "NodePort":
            return comma_separated(external) or NONE
        case "LoadBalancer":
            ingress = items(service, "status", "loadBalancer", "ingress")
            balancers = {text(each, "ip") or text(each, "hostname") for each in ingress} - {""}
            return comma_separated([*sorted(balancers), *external]) or "<pending>"
        case "ExternalName":
            return text(service, "spec", "externalName")
    return UNKNOWN


def _service_port(port: Manifest) -> str:
    node_port = number(port, "nodePort")
    ports = f"{number(port, 'port')}:{node_port}" if node_port > 0 else str(number(port, "port"))
    return f"{ports}/{text(port, 'protocol')}"


def _endpoints(obj: Manifest) -> str:
    subsets = items(obj, "subsets")
    if not subsets:
        return NONE
    found = []
    for subset in subsets:
        ips = [text(each, "ip") for each in items(subset, "addresses")]
        ports = items(subset, "ports")
        if not ports:
            found.extend(ips)
        for port in ports:
            found.extend(
                f"[{ip}]:{number(port, 'port')}" if ":" in ip else f"{ip}:{number(port, 'port')}"
                for ip in ips
            )
    shown = comma_separated(found[:_SHOWN_ENDPOINTS])
    more = len(found) - _SHOWN_ENDPOINTS
    return f"{shown} + {more} more..." if more > 0 else shown


def _usage(quota: Manifest, *, of_limits: bool) -> str:
    hard, used = mapping(quota, "status", "hard"), mapping(quota, "status", "used")
    return ", ".join(
        f"{name}: {used.get(name, '0')}/{hard[name]}"
        for name in sorted(hard)
        if name.startswith("limits.") == of_limits
    )


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("", "Namespace"): Columns(NAMED, text_at("Status", "status.phase", "Active, or on its way out."), AGED),
    ("", "Service"): Columns(
        NAMED,
        text_at("Type", "spec.type", "How the service is reached."),
        derived("Cluster-IP", _cluster_ip, "Its address inside the cluster."),
        derived("External-IP", _external_ip, "Its addresses from outside."),
        derived(
            "Port(s)",
            lambda obj: comma_separated(map(_service_port, items(obj, "spec", "ports"))) or NONE,
            "Its ports, with the nodes' ports that lead to them.",
        ),
        AGED,
        derived(
            "Selector",
            lambda obj: labels_cell(mapping(obj, "spec", "selector")),
            "The labels of the pods behind it.",
            wide=True,
        ),
    ),
    ("", "Endpoints"): Columns(
        NAMED, derived("Endpoints", _endpoints, "The addresses behind the service, or some of them."), AGED
    ),
    ("", "ConfigMap"): Columns(
        NAMED,
        derived(
            "Data",
            lambda obj: len(mapping(obj, "data")) + len(mapping(obj, "binaryData")),
            "How many entries it has.",
        ),
        AGED,
    ),
    ("", "Secret"): Columns(
        NAMED,
        text_at("Type", "type", "What the secret is for."),
        size_of("Data", "data", "How many entries it has.", type="string"),
        AGED,
    ),
    ("", "ServiceAccount"): NAME_AND_AGE,
    ("", "LimitRange"): NAME_AND_CREATION,
    ("", "ResourceQuota"): Columns(
        NAMED,
        derived("Request", lambda obj: _usage(obj, of_limits=False), "What is requested, of what may be."),
        derived("Limit", lambda obj: _usage(obj, of_limits=True), "The sum of limits, of what it may be."),
        AGED,
    ),
}
"""The tables of this family, by group and kind."""
