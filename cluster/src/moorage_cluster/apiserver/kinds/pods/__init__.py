"""Pods: defaulting, validation, updates, and the subresources."""
