"""Checks of Host and Origin: requests for another host, or from another site's page, are rejected.

A page in a browser can make requests to loopback; its Origin header identifies it, and a name that an
attacker pointed to 127.0.0.1 (DNS rebinding) is in the Host header.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from moorage.http.api_error import ApiError
from moorage.http.certificates import ALWAYS_NAMED

MAX_BODY_BYTES = 3 * 1024 * 1024
"""Maximum bytes of a request's body."""


class Guard:
    """Holds the host names of this server; `*.a.example` matches every name in a domain.

    is_for_programs: requests of web pages are all rejected, and any IP address is accepted as Host: unlike a
    name, it cannot be made to point here.
    """

    def __init__(self, names: Iterable[str] = (), *, is_for_programs: bool = False) -> None:
        self._names = {*ALWAYS_NAMED, *(name.lower() for name in names)}
        self._is_for_programs = is_for_programs
        self._last_host = ""
        """The Host header that was accepted last: clients send the same one with every request."""

    def check(self, headers: Mapping[str, str]) -> None:
        """ApiError (403) for a foreign Host or Origin."""
        host = headers.get("host", "")
        if host != self._last_host or not host:
            if not self._is_ours(host):
                raise _refused("Host", host)
            self._last_host = host
        origin = headers.get("origin")
        if origin is not None:
            try:
                where = urlsplit(origin).netloc
            except ValueError:
                where = ""
            if self._is_for_programs or not self._is_ours(where):
                raise _refused("Origin", origin)

    def _is_ours(self, host: str) -> bool:
        name = _without_port(host).lower()
        if name in self._names or f"*.{name.partition('.')[2]}" in self._names:
            return True
        address = _address(name)
        return address is not None and (self._is_for_programs or address.is_loopback)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _refused(header: str, value: str) -> ApiError:
    return ApiError(403, "Forbidden", f"the {header} header {value[:200]!r} names another host")
