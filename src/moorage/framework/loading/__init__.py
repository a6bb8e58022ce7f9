"""Plugins by name: the registry, and how plugins are found in files, packages and modules."""
