"""The laptop cluster: a package of its own (`moorage_cluster`) that need not be installed."""

from __future__ import annotations

from importlib.util import find_spec


def is_installed() -> bool:
    """Whether the package can be imported."""
    return find_spec("moorage_cluster") is not None


def missing(what: str) -> str:
    """The line for users of something that needs it."""
    return f"{what} needs the laptop cluster: pip install 'moorage[cluster]'"
