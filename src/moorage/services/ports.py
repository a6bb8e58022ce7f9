"""The ports of a scheduler."""

from __future__ import annotations

from typing import Final

SECURE_PORT: Final = 10259
"""Default port for HTTPS: kube-scheduler's."""
