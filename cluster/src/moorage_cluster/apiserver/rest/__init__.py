"""The generic verbs of every kind."""
