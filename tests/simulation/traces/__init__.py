"""Traces in our own schema and in the published ones."""
