"""Workloads from traces: one module for each published layout, and our own schema.

Each module turns rows into `TracePod`; `registry` knows all formats, and sorts what is not in the order
of arrival.
"""
