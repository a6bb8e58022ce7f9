"""Host ports: what a pod takes on its node besides resources."""

from __future__ import annotations

from typing import Final

HostPort = tuple[str, str, int]
"""Host IP, protocol, port."""

ANY_IP: Final = "0.0.0.0"
