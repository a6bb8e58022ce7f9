"""Defaults of an installation."""

from __future__ import annotations

from typing import Final

MEMORY_LIMIT: Final = "1280Mi"
"""Default memory limit: twice the usage with 5,000 nodes while 30,000 pods are being scheduled."""
CONTROL_PLANE: Final = "kube-system"
"""The namespace of a cluster's essential components."""
