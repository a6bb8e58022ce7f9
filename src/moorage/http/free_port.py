"""A port for a server in another process that is to be told where to listen."""

from __future__ import annotations

import random
import socket
from typing import Final

_PORTS: Final = range(20_000, 32_768)
"""Where ports are looked for: below those that Linux gives to outgoing connections.

A port among those may be taken by any connection of the machine before the server listens, and while it is
started again; a client that then tries to reach the server may even be connected to itself."""


def free_port() -> int:
    """A port of 127.0.0.1 on which nothing listens."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
