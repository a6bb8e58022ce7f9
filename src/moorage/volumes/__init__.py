"""Volumes and claims: which volume a claim can have where, and what is written to give it to it."""
