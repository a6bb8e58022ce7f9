"""The laptop cluster: a package of its own (`moorage_cluster`) that need not be installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def is_installed() -> bool:
    """Whether the package can be imported."""
    return find_spec("moorage_cluster") is not None


def missing(what: str) -> str:
    """The line for users of something that needs it."""
    return f"{what} needs the laptop cluster: pip install 'moorage[cluster]'"


def attribute(module: str, name: str) -> Any:
    """An attribute of a module of the package, which has to be installed."""
    return getattr(import_module(f"moorage_cluster.{module}"), name)
