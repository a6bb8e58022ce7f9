"""What commands that run for long have in common."""

from __future__ import annotations

import gc
import logging

_YOUNG_OBJECTS = 100_000


def long_running(command: str) -> None:
    """Set the process up for a long life: warnings go to stderr, and the garbage collector comes rarely."""
    logging.basicConfig(format=f"moorage {command}: %(message)s", level=logging.WARNING)
    collect_rarely()


def collect_rarely() -> None:
    """Make the garbage collector come rarely.

    A server holds millions of small objects that are never part of a circle; looking through them after
    every few hundred new ones, as Python does unless told otherwise, takes a fifth of the time.
    """
    gc.set_threshold(_YOUNG_OBJECTS, 20, 50)
