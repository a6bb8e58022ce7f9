"""What commands that run for long have in common."""

from __future__ import annotations

import gc
import logging

_YOUNG_OBJECTS = 5_000
_YOUNG_PASSES = 3
_MIDDLE_PASSES = 600


def long_running(command: str) -> None:
    """Set the process up for a long life: warnings go to stderr, and garbage is collected in passing."""
    logging.basicConfig(format=f"moorage {command}: %(message)s", level=logging.WARNING)
    collect_in_passing()


def collect_in_passing() -> None:
    """Let the garbage collector look at new objects for milliseconds, and hardly ever at all objects.

    A server holds millions of small objects that are never part of a circle; looking through them again and
    again, as Python does unless told otherwise, takes a fifth of the time, and half a second each time.
    """
    gc.set_threshold(_YOUNG_OBJECTS, _YOUNG_PASSES, _MIDDLE_PASSES)
