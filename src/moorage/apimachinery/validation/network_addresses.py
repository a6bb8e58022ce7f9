"""Validation of IP addresses, networks and ports in any object."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from moorage.api.names import cached_rule, port_name_problems
from moorage.apimachinery.fields import FieldError, complaints, invalid
from moorage.apimachinery.validation.checks import check_range

HTTPS_PORT: Final = 443
_MAX_PORT = 65535
_ADDRESS_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NETWORK_RULE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_LEADING_ZEROS = re.compile(r"(?:(?<=[.:])|^)0+([0-9]+)(?=\.|\Z)")
"""Leading zeros of a number between dots, or between a dot and either end."""
_LOCAL_MULTICAST = {4: ip_network("224.0.0.0/24"), 6: ip_network("ff02::/16")}


def _sloppily_read(text: str) -> IPv4Address | IPv6Address | None:
    """An address by Kubernetes' legacy parser, which allows leading zeros; None if it is not one."""
    if "%" in text:
        return None
    try:
        return ip_address(_LEADING_ZEROS.sub(r"\1", text) if "." in text else text)
    except ValueError:
        return None


def is_address(text: str) -> bool:
    """Whether a text can be parsed as an IP address."""
    return _sloppily_read(text) is not None


@cached_rule
def address_problems(text: str) -> tuple[str, ...]:
    """Why a text is not a valid IP address."""
    address = _sloppily_read(text)
    if address is None:
        return (_ADDRESS_RULE,)
    if "." in text and _LEADING_ZEROS.search(text):
        return ("must not have leading 0s",)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return ("must not be an IPv4-mapped IPv6 address",)
    return ()


def check_address(text: str, path: str) -> list[FieldError]:
    """An IP address."""
    return complaints(path, text, address_problems(text))


def check_network(text: str, path: str) -> list[FieldError]:
    """A network in CIDR notation."""
    if "/" not in text:
        return [invalid(path, text, _NETWORK_RULE)]
    try:
        ip_network(text)
    except ValueError as error:
        if "host bits" in str(error):
            return [invalid(path, text, "must not have bits set beyond the prefix length")]
        return [invalid(path, text, _NETWORK_RULE)]
    return []


def check_reachable_address(text: str, path: str) -> list[FieldError]:
    """An IP address that traffic may be sent to."""
    address = _sloppily_read(text)
    if address is None:
        return [invalid(path, text, "must be a valid IP address")]
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    errors = []
    if address.is_unspecified:
        errors.append(invalid(path, text, f"may not be unspecified ({text})"))
    if address.is_loopback:
        errors.append(invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if address.is_link_local:
        errors.append(invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if address.is_multicast and address in _LOCAL_MULTICAST[address.version]:
        errors.append(
            invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
        )
    return errors


def is_dual_stack(addresses: Sequence[str]) -> bool:
    """Whether valid addresses are one of each family."""
    return len(addresses) == 2 and len({":" in address for address in addresses}) == 2


def check_port(port: int, path: str) -> list[FieldError]:
    """A port number."""
    return check_range(port, 1, _MAX_PORT, path)


def check_service_port(port: int, path: str) -> list[FieldError]:
    """The port of a service that the server would call."""
    return [invalid(path, port, f"port is not valid: {error.detail}") for error in check_port(port, path)]


def check_port_or_name(port: int | str, path: str) -> list[FieldError]:
    """A port number or a port name."""
    if isinstance(port, str):
        return complaints(path, port, port_name_problems(port))
    return check_port(port, path)
