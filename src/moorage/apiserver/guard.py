"""Who may talk to the server at all: requests for another host, or from another site's page, are refused.

A page in a browser can make requests to loopback; its Origin gives it away, and a name that an attacker made
point to 127.0.0.1 (DNS rebinding) shows in the Host header.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from moorage.apiserver.certificates import ALWAYS_NAMED
from moorage.apiserver.errors import ApiError

MAX_BODY_BYTES = 3 * 1024 * 1024
"""The longest body that is read."""


class Guard:
    """Knows the names under which this server may be called."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {*ALWAYS_NAMED, *(name.lower() for name in names)}
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
            if not self._is_ours(where):
                raise _refused("Origin", origin)

    def _is_ours(self, host: str) -> bool:
        name = _without_port(host).lower()
        return name in self._names or _is_loopback(name)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _refused(header: str, value: str) -> ApiError:
    return ApiError(403, "Forbidden", f"the {header} header {value[:200]!r} names another host")
