"""Addresses: each node has one of its own and a network for its pods."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, ip_network
from typing import Final

_HOSTS: Final = IPv4Network("10.0.0.0/10")
_PODS: Final = IPv4Network("10.128.0.0/9")
_POD_PREFIX: Final = 24
_FIRST_POD: Final = 2
"""Offset of the first pod's address, after the network's own and its gateway's."""


class Addresses:
    """Allocates addresses and networks of nodes, each once; those of existing nodes are reserved."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._hosts: Iterator[IPv4Address] = iter(_HOSTS.hosts())
        self._networks: Iterator[IPv4Network] = _PODS.subnets(new_prefix=_POD_PREFIX)

    def taken(self, *addresses: str) -> None:
        """Mark addresses as in use."""
        self._taken.update(addresses)

    def host(self) -> str:
        """An address for a node."""
        return self._next(self._hosts)

    def network(self) -> str:
        """A network for a node's pods."""
        return self._next(self._networks)

    def _next(self, candidates: Iterator[IPv4Address] | Iterator[IPv4Network]) -> str:
        free = next(str(each) for each in candidates if str(each) not in self._taken)
        self._taken.add(free)
        return free


class PodAddresses:
    """Allocates the addresses of one node's network; a released one is reused last."""

    def __init__(self, network: str) -> None:
        parsed = ip_network(network, strict=False)
        self._first = parsed.network_address
        self._size = parsed.num_addresses - _FIRST_POD - 1
        self._next = 0
        self._taken: dict[str, str] = {}
        self._of: dict[str, str] = {}

    def take(self, uid: str) -> str:
        """An address for a pod; none if all are taken."""
        for _ in range(min(self._size, len(self._taken) + 1)):
            address = str(self._first + _FIRST_POD + self._next)
            self._next = (self._next + 1) % self._size
            if address not in self._taken:
                self.keep(uid, address)
                return address
        return ""

    def keep(self, uid: str, address: str) -> None:
        """Reserve an address that a pod already has."""
        self._taken[address] = uid
        self._of[uid] = address

    def release(self, uid: str) -> None:
        """Release a pod's address; idempotent."""
        address = self._of.pop(uid, None)
        if address is not None and self._taken.get(address) == uid:
            del self._taken[address]
