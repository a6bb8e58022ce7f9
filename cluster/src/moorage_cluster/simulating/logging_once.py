"""What controllers log, once: in virtual time they try in a moment what takes days."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGED = ("moorage_cluster.controllers.controller", "moorage_cluster.nodes.outbox")
"""The loggers of what is tried again."""


class _Once(logging.Filter):
    """Lets each message pass once."""

    def __init__(self) -> None:
        super().__init__()
        self._known: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        is_new = message not in self._known
        self._known.add(message)
        return is_new


@contextmanager
def once_per_message() -> Iterator[None]:
    """While the context is entered, a message of controllers and kubelets is logged once."""
    once, loggers = _Once(), [logging.getLogger(name) for name in _LOGGED]
    for logger in loggers:
        logger.addFilter(once)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(once)
