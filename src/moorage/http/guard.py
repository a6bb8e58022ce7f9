"""Who may talk to the server at all: requests for another host, or from another site's page, are refused.

A page in a browser can make requests to loopback; its Origin gives it away, and a name that an attacker made
point to 127.0.0.1 (DNS rebinding) shows in the Host header.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from moorage.http.api_error import ApiError
from moorage.http.certificates import ALWAYS_NAMED

MAX_BODY_BYTES = 3 * 1024 * 1024
"""The longest body that is read."""


class Guard:
    """Knows the names under which this server may be called; `*.a.example` is every name in a domain.

    is_for_programs: no page in a browser has any business here, and none is let in; and the server may be
    called by any address, which cannot be made to point here as a name can.
    """

    def __init__(self, names: Iterable[str] = (), *, is_for_programs: bool = False) -> None:
        self._names = {*ALWAYS_NAMED, *(name.lower() for name in names)}
        self._is_for_programs = is_for_programs
        self._last_host = ""
        """What was found to be ours last: clients say the same with every request."""

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
