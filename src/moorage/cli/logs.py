"""Logs as Kubernetes components write them: klog's text, or a JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, Literal

LogFormat = Literal["text", "json"]

_LETTERS: Final = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_DEBUG_VERBOSITY: Final = 4
"""From this `-v` on, everything is said."""


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
            line["v"] = 0 if record.levelno >= logging.INFO else _DEBUG_VERBOSITY
        if record.exc_info:
            line["err"] = self.formatException(record.exc_info)
        return json.dumps(line)


def write_logs(verbosity: int, format: LogFormat) -> None:
    """Write what is logged from now on to standard error output."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if format == "json" else _Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)  # Libraries need not tell of their everyday life.
    logging.getLogger("moorage").setLevel(logging.DEBUG if verbosity >= _DEBUG_VERBOSITY else logging.INFO)
