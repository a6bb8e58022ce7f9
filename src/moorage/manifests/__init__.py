"""Manifests that install a scheduler: its service account, permissions, configuration and workload."""
