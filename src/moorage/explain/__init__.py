"""Readable reports of decisions."""
