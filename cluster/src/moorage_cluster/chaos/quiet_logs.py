"""Loggers that say nothing for a while: what fails on purpose is not logged."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet(name: str) -> Iterator[None]:
    """Nothing that a logger, and those below it, have to say but critical messages."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
