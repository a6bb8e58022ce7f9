"""The commands of the laptop cluster."""
