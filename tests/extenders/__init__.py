"""Extenders: asking them, and being one."""
