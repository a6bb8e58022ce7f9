"""The version, for whoever must not import the rest."""

__version__ = "0.1.0"
