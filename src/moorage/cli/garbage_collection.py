"""Process setup shared by long-running commands."""

from __future__ import annotations

import gc
import logging

_YOUNG_OBJECTS = 5_000
_YOUNG_PASSES = 3
_MIDDLE_PASSES = 600


def long_running(command: str) -> None:
    """Set up a long-running process: warnings go to stderr, and full garbage collections are rare."""
    logging.basicConfig(format=f"moorage {command}: %(message)s", level=logging.WARNING)
    collect_in_passing()


def collect_in_passing() -> None:
    """Make the garbage collector examine new objects for milliseconds, and hardly ever all objects.

    A server holds millions of small objects that are never part of a cycle; examining all of them repeatedly,
    as Python does by default, takes a fifth of the time, and half a second each time.
    """
    gc.set_threshold(_YOUNG_OBJECTS, _YOUNG_PASSES, _MIDDLE_PASSES)
