"""Limits of HTTP servers that users can set."""

from __future__ import annotations

from typing import Final

MAX_CONNECTIONS: Final = 2000
"""Default maximum number of connections."""
