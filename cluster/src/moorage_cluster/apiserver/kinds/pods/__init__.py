"""Pods: what is filled in, what is refused, what may change, and the subresources."""
