"""Logs as Kubernetes components write them: klog's text, or a JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

from moorage.services.verbosity import level_for, verbosity_of

LogFormat = Literal["text", "json"]

_LETTERS: Final = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


class _Text(logging.Formatter):
    """`I0102 15:04:05.000000  1234 file.py:12] message`."""

    def format(self, record: logging.LogRecord) -> str:
        letter = _LETTERS.get(record.levelno, "I")
        moment = datetime.fromtimestamp(record.created).astimezone()
        where = f"{record.filename}:{record.lineno}"
        head = f"{letter}{moment:%m%d %H:%M:%S.%f} {record.process:7d} {where}]"
        text = f"{head} {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _Json(logging.Formatter):
    """An object with the time in milliseconds, the place in the code, and the message."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": round(datetime.fromtimestamp(record.created, UTC).timestamp() * 1000, 3),
            "caller": f"{record.module}/{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno >= logging.WARNING:
            line["level"] = record.levelname.lower()
        else:
            line["v"] = verbosity_of(record.levelno)
        if record.exc_info:
            line["err"] = self.formatException(record.exc_info)
        return json.dumps(line)


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How much to log, how, and where to."""

    verbosity: int = 0
    format: LogFormat = "text"
    by_file: Sequence[tuple[str, int]] = ()
    """Patterns of file names (without `.py`), each with the verbosity for those files; the first counts."""
    splits_streams: bool = False
    """Whether only errors go to stderr, and all else to stdout."""


class _Verbosity(logging.Filter):
    """Leaves out what only a higher verbosity would show."""

    def __init__(self, options: LogOptions) -> None:
        super().__init__()
        self._options = options

    def filter(self, record: logging.LogRecord) -> bool:
        needed = verbosity_of(record.levelno)
        if not needed:
            return True
        wanted = self._options.verbosity
        for pattern, verbosity in self._options.by_file:
            if fnmatchcase(record.module, pattern):
                wanted = verbosity
                break
        return wanted >= needed


def write_logs(options: LogOptions) -> None:
    """Write what is logged from now on to standard error output, or only errors there."""
    formatter = _Json() if options.format == "json" else _Text()
    errors = logging.StreamHandler(sys.stderr)
    handlers = [errors]
    if options.splits_streams:
        errors.setLevel(logging.ERROR)
        others = logging.StreamHandler(sys.stdout)
        others.addFilter(lambda record: record.levelno < logging.ERROR)
        handlers.append(others)
    for handler in handlers:
        handler.setFormatter(formatter)
        handler.addFilter(_Verbosity(options))
    root = logging.getLogger()
    root.handlers[:] = handlers
    root.setLevel(logging.WARNING)  # Libraries need not tell of their everyday life.
    most = max((options.verbosity, *(verbosity for _, verbosity in options.by_file)))
    logging.getLogger("moorage").setLevel(level_for(most))
