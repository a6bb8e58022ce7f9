"""moorage's own version; those of Kubernetes are in `moorage.emulation`. Imports nothing."""

__version__ = "0.1.0"
