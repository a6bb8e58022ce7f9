"""The socket that the scheduler's own server listens on."""

from __future__ import annotations

import socket
from typing import Final

from moorage.apiserver.serving import ServingError

_BACKLOG: Final = 1024
_EVERYWHERE: Final = ("", "0.0.0.0", "::")


def listen(address: str, port: int, *, shares_port: bool = False) -> socket.socket:
    """A listening socket; port 0: any free one. Who listens everywhere does so on IPv4 and IPv6.

    shares_port: whether others may listen on the same port.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    is_everywhere = address in _EVERYWHERE
    if is_everywhere and socket.has_dualstack_ipv6():
        family, address = socket.AF_INET6, "::"
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if is_everywhere and family is socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # A scheduler that is started again listens at once, as Go programs do whatever they are told.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((address, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise ServingError(f"cannot listen on {address}:{port}: {reason.lower()}") from None
    listener.setblocking(False)
    return listener
