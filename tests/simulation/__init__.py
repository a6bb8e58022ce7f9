"""Simulations in virtual time."""
