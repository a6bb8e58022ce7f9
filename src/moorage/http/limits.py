"""Limits of HTTP servers that users can set."""

from __future__ import annotations

from typing import Final

MAX_CONNECTIONS: Final = 2000
"""Default maximum number of connections."""
MAX_READS: Final = 400
"""Default maximum of reading requests in flight, as in kube-apiserver."""
MAX_WRITES: Final = 200
"""Default maximum of writing requests in flight, as in kube-apiserver."""
