"""Networking: ingresses, network policies, endpoint slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.kinds.ingresses import DEFAULT_CLASS_ANNOTATION
from moorage_cluster.apiserver.tables.base import NAME, Printer
from moorage_cluster.apiserver.tables.cells import (
    NONE,
    UNSET,
    at,
    comma_separated,
    items,
    number,
    selector_cell,
    text,
    texts,
)
from moorage_cluster.apiserver.tables.columns import AGED, NAMED, Columns, Shown, derived, name_of, text_at

_NETWORKING: Final = "networking.k8s.io"
_MAX_SHOWN: Final = 3


def _hosts(ingress: Manifest) -> str:
    """The first hosts; the rest is shown as a number of rules."""
    rules = items(ingress, "spec", "rules")
    named = [index for index, rule in enumerate(rules) if text(rule, "host")][:_MAX_SHOWN]
    shown = comma_separated(text(rules[index], "host") for index in named) or "*"
    is_more = len(named) == _MAX_SHOWN and named[-1] < len(rules) - 1
    return f"{shown} + {len(rules) - _MAX_SHOWN} more..." if is_more else shown


def _address(ingress: Manifest) -> str:
    points = items(ingress, "status", "loadBalancer", "ingress")
    return comma_separated(sorted({text(each, "ip") or text(each, "hostname") for each in points} - {""}))


def _ingress_class_name(ingress_class: Manifest) -> str:
    is_default = text(ingress_class, "metadata", "annotations", DEFAULT_CLASS_ANNOTATION) == "true"
    return f"{name_of(ingress_class)} (default)" if is_default else name_of(ingress_class)


def _parameters(ingress_class: Manifest) -> str:
    parameters = at(ingress_class, "spec", "parameters")
    if parameters is None:
        return NONE
    group = at(parameters, "apiGroup")
    kind = text(parameters, "kind") if group is None else f"{text(parameters, 'kind')}.{group}"
    return f"{kind}/{text(parameters, 'name')}"


def _first(values: Sequence[str]) -> str:
    shown = comma_separated(values[:_MAX_SHOWN])
    more = len(values) - _MAX_SHOWN
    return f"{shown} + {more} more..." if more > 0 else shown or UNSET


def _ports(endpoint_slice: Manifest) -> str:
    return _first(
        [
            str(number(port, "port")) if at(port, "port") is not None else text(port, "name")
            for port in items(endpoint_slice, "ports")
        ]
    )


def _endpoints(endpoint_slice: Manifest) -> str:
    endpoints = items(endpoint_slice, "endpoints")
    return _first([address for each in endpoints for address in texts(each, "addresses")])


PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    (_NETWORKING, "Ingress"): Columns(
        NAMED,
        text_at("Class", "spec.ingressClassName", "Which controller serves it.", missing=NONE),
        derived("Hosts", _hosts, "The hosts that its rules are about."),
        derived("Address", _address, "Where it is reached."),
        derived(
            "Ports",
            lambda obj: "80, 443" if items(obj, "spec", "tls") else "80",
            "The ports at which it is reached.",
        ),
        AGED,
    ),
    (_NETWORKING, "IngressClass"): Columns(
        Shown(NAME, lambda obj, _: _ingress_class_name(obj)),
        text_at("Controller", "spec.controller", "Which controller serves ingresses of this class."),
        derived("Parameters", _parameters, "The object that configures the controller."),
        AGED,
    ),
    (_NETWORKING, "NetworkPolicy"): Columns(
        NAMED,
        derived(
            "Pod-Selector",
            lambda obj: selector_cell(at(obj, "spec", "podSelector")),
            "The pods that it is about.",
        ),
        AGED,
    ),
    ("discovery.k8s.io", "EndpointSlice"): Columns(
        NAMED,
        text_at("AddressType", "addressType", "What its addresses are."),
        derived("Ports", _ports, "The ports of its endpoints, or some of them."),
        derived("Endpoints", _endpoints, "The addresses of its endpoints, or some of them."),
        AGED,
    ),
}
"""The tables of this family, by group and kind."""
