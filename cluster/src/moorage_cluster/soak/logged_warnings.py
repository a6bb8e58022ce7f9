"""Warnings and errors that are logged in this process, counted by message instead of printed."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from moorage.klog import Message

_LOGGERS: Final = ("moorage", "moorage_cluster")
_MAX_MESSAGES: Final = 100
"""Number of different messages that are kept."""
_OTHERS: Final = "others"


class _Counting(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.counts: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.msg.text if isinstance(record.msg, Message) else str(record.msg)
        is_known = message in self.counts or len(self.counts) < _MAX_MESSAGES
        self.counts[message if is_known else _OTHERS] += 1


@contextmanager
def counted_warnings() -> Iterator[Counter[str]]:
    """The messages that are logged in the context, and how often."""
    counting = _Counting()
    loggers = [logging.getLogger(each) for each in _LOGGERS]
    propagated = [each.propagate for each in loggers]
    for each in loggers:
        each.addHandler(counting)
        each.propagate = False
    try:
        yield counting.counts
    finally:
        for each, propagates in zip(loggers, propagated, strict=True):
            each.removeHandler(counting)
            each.propagate = propagates
