"""Structured logging as Kubernetes components do it: a verbosity, a message, and keys with values.

It is built on the standard library's `logging`, so plugins' log lines go to the same place and follow
the same `-v`. The message of a record is a `Message`: its text is klog's, its values are for JSON.

Calls on the per-pod path are guarded by one comparison, the only cost of a disabled level:

    if log.v >= 3:
        log.info(3, "Attempting to schedule pod", pod=kobj(pod))
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple, Protocol
from weakref import WeakSet

ROOT: Final = "moorage"
"""The parent of all loggers, plugins' included."""

_LEVELS: Final = (20, 17, 15, 12, 10, 9, 8, 7, 6, 5, 4)
"""The standard library's level for each verbosity: 0 is INFO, 4 is DEBUG. Higher verbosities are like 10."""

_NAMES_FROM: Final = 4
"""Verbosity from which lines name the plugin they come from, as in kube-scheduler."""

UNHANDLED: Final = "UnhandledError"
"""The logger name of errors that are only logged; shown at every verbosity."""


def level_of(verbosity: int) -> int:
    """The standard library's level for a `-v`."""
    return _LEVELS[min(verbosity, len(_LEVELS) - 1)]


def verbosity_of(level: int) -> int:
    """The lowest `-v` at which a level is logged."""
    return next((v for v, lowest in enumerate(_LEVELS) if level >= lowest), len(_LEVELS) - 1)


# -- values


class ObjectRef(NamedTuple):
    """An object in the log: "namespace/name" as text, a mapping in JSON."""

    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class _Object(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def namespace(self) -> str: ...


def kobj(obj: _Object) -> ObjectRef:
    """A reference to an object."""
    return ObjectRef(obj.name, obj.namespace)


_TO_QUOTE: Final = re.compile(r'["\\]|[^ -~]')
_SHORT_ESCAPES: Final = {
    '"': r"\"",
    "\\": r"\\",
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
}
_LAST_BYTE: Final = 0x7F
_LAST_SHORT: Final = 0xFFFF


def quoted(text: str) -> str:
    """A string in quotation marks, escaped as in Go."""
    return f'"{_TO_QUOTE.sub(_escaped, text)}"'


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if (short := _SHORT_ESCAPES.get(character)) is not None:
        return short
    if character.isprintable():
        return character
    code = ord(character)
    if code <= _LAST_BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_SHORT else f"\\U{code:08x}"


def _text_value(value: object) -> str:
    """`=` and a value, as klog writes it after a key."""
    if isinstance(value, ObjectRef):
        return f'="{value}"'
    if isinstance(value, BaseException):
        value = _error_text(value)
    if not isinstance(value, str):
        return f"={_html_escaped(json.dumps(json_value(value), separators=(',', ':'), ensure_ascii=False))}"
    if "\n" not in value:
        return f"={quoted(value)}"
    lines = "".join(f"\t{line}\n" for line in value.removesuffix("\n").split("\n"))
    return f"=<\n{lines} >"


def _html_escaped(text: str) -> str:
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def json_value(value: object) -> Any:
    """A value for JSON; a set is a mapping to empty objects, as in Go."""
    if isinstance(value, ObjectRef):
        return {key: text for key, text in value._asdict().items() if text or key == "name"}
    if isinstance(value, BaseException):
        return _error_text(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(each) for key, each in value.items()}
    if isinstance(value, AbstractSet):
        return {str(each): {} for each in sorted(value)}
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def _error_text(error: BaseException) -> str:
    return str(error) or type(error).__name__


class Message:
    """The message of a line. `str` is its text in klog's format, built only when the line is written."""

    __slots__ = ("error", "text", "values")

    def __init__(self, text: str, values: Mapping[str, object], error: object = None) -> None:
        self.text = text
        self.values = values
        self.error = error

    def __str__(self) -> str:
        pairs = [] if self.error is None else [("err", self.error)]
        return quoted(self.text) + "".join(
            f" {key}{_text_value(value)}" for key, value in (*pairs, *self.values.items())
        )


# -- verbosity


class _Settings:
    """The verbosity, by file; one for the process, as the standard library's loggers are.

    Loggers are held weakly: those of a plugin's file go with its module when the file is loaded again.
    """

    def __init__(self) -> None:
        self.verbosity = 0
        self.by_file: Sequence[tuple[str, int]] = ()
        self.loggers: WeakSet[Logger] = WeakSet()

    def of(self, file: str) -> int:
        """The verbosity of a file, named without `.py`."""
        return next((v for pattern, v in self.by_file if fnmatchcase(file, pattern)), self.verbosity)


_SETTINGS: Final = _Settings()


def set_verbosity(verbosity: int, by_file: Sequence[tuple[str, int]] | None = None) -> None:
    """Set the verbosity.

    by_file: patterns of file names without `.py`, each with the verbosity of those files; the first match
        applies. None: as before.
    """
    _SETTINGS.verbosity = verbosity
    if by_file is not None:
        _SETTINGS.by_file = by_file
    most = max((verbosity, *(v for _, v in _SETTINGS.by_file)))
    logging.getLogger(ROOT).setLevel(level_of(most))
    for logger in _SETTINGS.loggers:
        logger.v = _SETTINGS.of(logger.file)


def verbosity_of_file(file: str) -> int:
    """The verbosity of a file, named without `.py`."""
    return _SETTINGS.of(file)


class Logger:
    """Writes lines for one module; create it with the module's `__name__`.

    v: the verbosity in force for this module.

    The key `logger` names the plugin that a line comes from; it is left out below `-v=4`.
    """

    __slots__ = ("__weakref__", "_logger", "file", "v")

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)
        self.file = name.rpartition(".")[2]
        self.v = _SETTINGS.of(self.file)
        _SETTINGS.loggers.add(self)

    def info(self, verbosity: int, message: str, /, **values: object) -> None:
        """Write a line if the verbosity is enabled."""
        level = level_of(verbosity)
        if verbosity <= self.v and self._logger.isEnabledFor(level):
            self._logger.log(level, Message(message, self._shown(values)), stacklevel=2)

    def infof(self, verbosity: int, text: str) -> None:
        """Write a line of unstructured text, as some lines of Kubernetes components are."""
        if verbosity <= self.v:
            self._logger.log(level_of(verbosity), "%s", text, stacklevel=2)

    def warning(self, message: str, /, **values: object) -> None:
        """Write a warning, at any verbosity."""
        self._logger.warning(Message(message, self._shown(values)), stacklevel=2)

    def error(self, error: object, message: str, /, **values: object) -> None:
        """Write an error, at any verbosity; `error` is the cause, if known."""
        self._logger.error(Message(message, self._shown(values), error), stacklevel=2)

    def exception(self, error: Exception, message: str, /, **values: object) -> None:
        """Write an unexpected error with its traceback."""
        record = Message(message, self._shown(values), error)
        self._logger.error(record, exc_info=error, stacklevel=2)

    def _shown(self, values: dict[str, object]) -> dict[str, object]:
        if self.v < _NAMES_FROM and values.get("logger", UNHANDLED) != UNHANDLED:
            del values["logger"]
        return values
