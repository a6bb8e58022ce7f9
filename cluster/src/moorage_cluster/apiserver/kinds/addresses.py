"""Allocation of cluster IPs and node ports to services.

Nothing is tracked here: allocated values are read from stored services, so a rejected write leaks nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import FieldError, invalid

HEADLESS: Final = "None"
_STATIC_ADDRESSES = 256
_STATIC_PORTS = 86
"""The lowest ones are reserved for explicit requests while others are free."""
_FULL = "range is full"


class ClusterIPAllocator:
    """The range of cluster IPs."""

    def __init__(self, network: str = "10.96.0.0/12") -> None:
        self.network = ipaddress.IPv4Network(network)
        self._first = int(self.network.network_address) + 1
        self._size = max(self.network.num_addresses - 2, 0)

    def allocate(self, taken: Collection[str]) -> str | None:
        """A free address, the same one for the same input; None if all are allocated."""
        static = min(_STATIC_ADDRESSES, self._size // 16)
        start = static + len(taken)
        for step in range(self._size):
            candidate = str(ipaddress.IPv4Address(self._first + (start + step) % self._size))
            if candidate not in taken:
                return candidate
        return None

    def problem(self, address: str, taken: Collection[str]) -> str:
        """Why a service may not have the address it requests; empty if it may."""
        number = int(ipaddress.IPv4Address(address))
        if not self._first <= number < self._first + self._size:
            outside = f"the provided IP ({address}) is not in the valid range."
            return f"{outside} The range of valid IPs is {self.network}"
        return "provided IP is already allocated" if address in taken else ""


class NodePortAllocator:
    """The range of node ports."""

    def __init__(self, first: int = 30000, last: int = 32767) -> None:
        self.first = first
        self.last = last

    def allocate(self, taken: Collection[int]) -> int | None:
        """A free port, the same one for the same input; None if all are allocated."""
        size = self.last - self.first + 1
        start = min(_STATIC_PORTS, size // 16) + len(taken)
        for step in range(size):
            candidate = self.first + (start + step) % size
            if candidate not in taken:
                return candidate
        return None

    def problem(self, port: int, taken: Collection[int]) -> str:
        """Why a service may not have the port it requests; empty if it may."""
        if not self.first <= port <= self.last:
            return (
                "provided port is not in the valid range. The range of valid ports is "
                f"{self.first}-{self.last}"
            )
        return "provided port is already allocated" if port in taken else ""


@dataclass
class AllocatedAddresses:
    """The addresses and ports of other services."""

    addresses: set[str] = field(default_factory=set)
    ports: set[tuple[str, int]] = field(default_factory=set)
    """By protocol."""

    def numbers(self, protocol: str) -> set[int]:
        """The ports allocated for one protocol."""
        return {number for taken_for, number in self.ports if taken_for == protocol}


def allocated_by(services: Iterable[Manifest], *, except_for: Manifest) -> AllocatedAddresses:
    """The addresses and ports of all services but one."""
    own = except_for.get("metadata") or {}
    name = (own.get("namespace"), own.get("name"))
    taken = AllocatedAddresses()
    for service in services:
        metadata, spec = service.get("metadata") or {}, service.get("spec") or {}
        if (metadata.get("namespace"), metadata.get("name")) == name:
            continue
        taken.addresses.update(ip for ip in spec.get("clusterIPs") or () if ip != HEADLESS)
        for port in spec.get("ports") or ():
            if number := port.get("nodePort"):
                taken.ports.add((port.get("protocol", "TCP"), number))
        if number := spec.get("healthCheckNodePort"):
            taken.ports.add(("TCP", number))
    return taken


def give_cluster_ip(spec: Manifest, taken: AllocatedAddresses, addresses: ClusterIPAllocator) -> None:
    """Allocate an address to a service that requests none, if one is free."""
    if not spec.get("clusterIPs") and (found := addresses.allocate(taken.addresses)):
        spec["clusterIP"], spec["clusterIPs"] = found, [found]


def give_node_ports(spec: Manifest, taken: AllocatedAddresses, ports: NodePortAllocator) -> None:
    """Allocate node ports to a service's ports that request none, while any are free.

    Two ports of one service with the same number and different protocols share a node port.
    """
    own: dict[int, set[str]] = {}
    shared: dict[int, int] = {}
    used = {number for _, number in taken.ports} | _own_ports(spec)
    for port in spec.get("ports") or ():
        protocol, number = port.get("protocol", "TCP"), port.get("nodePort", 0)
        if not number:
            number = shared.get(port["port"], 0)
            if not number or protocol in own[number]:
                number = ports.allocate(used) or 0
            if not number:
                continue
            port["nodePort"] = number
        used.add(number)
        own.setdefault(number, set()).add(protocol)
        shared.setdefault(port["port"], number)


def give_health_check_port(spec: Manifest, taken: AllocatedAddresses, ports: NodePortAllocator) -> None:
    """Allocate a health check node port to a load balancer that needs one, if one is free."""
    used = {number for _, number in taken.ports} | _own_ports(spec)
    if not spec.get("healthCheckNodePort") and (found := ports.allocate(used)):
        spec["healthCheckNodePort"] = found


def _own_ports(spec: Manifest) -> set[int]:
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def check_cluster_ip(
    spec: Manifest, taken: AllocatedAddresses, addresses: ClusterIPAllocator
) -> list[FieldError]:
    """Check that a service has an address that it may have."""
    wanted = spec.get("clusterIPs") or []
    if not wanted:
        return [invalid("spec.clusterIPs", wanted, f"failed to allocate IP: {_FULL}")]
    if why := addresses.problem(wanted[0], taken.addresses):
        return [invalid("spec.clusterIPs", wanted, f"failed to allocate IP {wanted[0]}: {why}")]
    return []


def check_node_ports(
    spec: Manifest, taken: AllocatedAddresses, ports: NodePortAllocator, *, needed: bool
) -> list[FieldError]:
    """Check that a service has node ports that it may have, and where `needed` all of them."""
    errors = []
    for index, port in enumerate(spec.get("ports") or ()):
        number = port.get("nodePort", 0)
        if number:
            why = ports.problem(number, taken.numbers(port.get("protocol", "TCP")))
        else:
            why = _FULL if needed else ""
        if why:
            errors.append(invalid(f"spec.ports[{index}].nodePort", number, why))
    return errors


def check_health_check_port(
    spec: Manifest, taken: AllocatedAddresses, ports: NodePortAllocator
) -> list[FieldError]:
    """Check that a load balancer has a health check node port."""
    number = spec.get("healthCheckNodePort", 0)
    why = ports.problem(number, taken.numbers("TCP")) if number else _FULL
    return [invalid("spec.healthCheckNodePort", number, why)] if why else []
