"""Simulations with controllers: the laptop cluster in virtual time."""
