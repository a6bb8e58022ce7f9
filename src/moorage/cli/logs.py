"""Logs as Kubernetes components write them: klog's text, or one JSON object per line."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Any, Final, Literal

from moorage.klog import Message, json_value, set_verbosity, verbosity_of, verbosity_of_file

LogFormat = Literal["text", "json"]

_LETTERS: Final = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


class _Text(logging.Formatter):
    """`I0102 15:04:05.000000    1234 file.py:12] "message" key="value"`."""

    def format(self, record: logging.LogRecord) -> str:
        letter = _LETTERS.get(record.levelno, "I")
        moment = datetime.fromtimestamp(record.created).astimezone()
        where = f"{record.filename}:{record.lineno}"
        head = f"{letter}{moment:%m%d %H:%M:%S.%f} {record.process:7d} {where}]"
        text = f"{head} {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _Json(logging.Formatter):
    """An object: the time in milliseconds, the place in the code, the message, its verbosity and values."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.msg if isinstance(record.msg, Message) else Message(record.getMessage(), {})
        values = {key: json_value(value) for key, value in message.values.items()}
        path = PurePath(record.pathname)
        line: dict[str, Any] = {"ts": round(record.created * 1000, 4)}
        if "logger" in values:
            line["logger"] = values.pop("logger")
        line |= {"caller": f"{path.parent.name}/{path.name}:{record.lineno}", "msg": message.text}
        if record.levelno < logging.ERROR:
            line["v"] = verbosity_of(record.levelno)
        line |= values
        if message.error is not None:
            line["err"] = json_value(message.error)
        if record.exc_info:
            line["stacktrace"] = self.formatException(record.exc_info)
        return json.dumps(line, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class LoggingOptions:
    """Verbosity, format and destination of logs."""

    verbosity: int = 0
    format: LogFormat = "text"
    by_file: Sequence[tuple[str, int]] = ()
    """Patterns of file names (without `.py`), each with the verbosity for those files; the first counts."""
    splits_streams: bool = False
    """Whether only errors go to stderr, and all else to stdout."""


def _is_wanted(record: logging.LogRecord) -> bool:
    """Whether a record is within the verbosity, so that plugins need not check it before they log."""
    return verbosity_of(record.levelno) <= verbosity_of_file(record.module)


def write_logs(options: LoggingOptions) -> None:
    """Start writing logs to stderr, or only errors there and the rest to stdout."""
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
        handler.addFilter(_is_wanted)
    root = logging.getLogger()
    root.handlers[:] = handlers
    root.setLevel(logging.WARNING)  # Libraries log warnings and errors only.
    set_verbosity(options.verbosity, options.by_file)
