"""Versions: moorage's own, and that of the Kubernetes whose behaviour it has. Imports nothing."""

__version__ = "0.1.0"

KUBERNETES_VERSION = "1.36.4"
KUBERNETES_MINOR = "1.36"
"""The version to emulate."""
KUBERNETES_PREVIOUS_MINOR = "1.35"
"""The minimum compatibility version."""
