"""Decisions made readable."""
