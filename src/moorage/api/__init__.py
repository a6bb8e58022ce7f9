"""Kubernetes objects, quantities, selectors and taints: pure data, read by every other layer."""
