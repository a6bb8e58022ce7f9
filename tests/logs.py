"""What is written to the log, for tests that read it."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from moorage import klog
from moorage.cli.logs import LogFormat, LoggingOptions, write_logs

_PACKAGES = ("moorage", "moorage_cluster")
_HEAD = re.compile(r"^([IWEF])\d{4} \d\d:\d\d:\d\d\.\d{6} {1,7}\d+ \w+\.py:\d+\] ", re.MULTILINE)


def add_handler(handler: logging.Handler) -> None:
    """From now on, a handler is given what both packages log."""
    for name in _PACKAGES:
        logging.getLogger(name).addHandler(handler)


def remove_handler(handler: logging.Handler) -> None:
    for name in _PACKAGES:
        logging.getLogger(name).removeHandler(handler)


@contextmanager
def restored() -> Iterator[None]:
    """Afterwards, logs go where they went before, and as much of them."""
    root, ours = logging.getLogger(), logging.getLogger(klog.ROOT)
    kept = root.handlers[:], root.level, ours.level
    try:
        yield
    finally:
        klog.set_verbosity(0, ())
        root.handlers[:] = kept[0]
        root.setLevel(kept[1])
        ours.setLevel(kept[2])


@contextmanager
def written(verbosity: int, format: LogFormat = "text") -> Iterator[io.StringIO]:
    """What `moorage run` would write to stderr meanwhile."""
    with restored(), redirect_stderr(io.StringIO()) as stream:
        write_logs(LoggingOptions(verbosity, format))
        yield stream


def without_heads(text: str) -> list[str]:
    """Lines without time, process and place: the severity's letter, and what is said."""
    return _HEAD.sub(r"\1 ", text).splitlines()
