"""The location of an error in the plugin's own file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from traceback import walk_tb
from typing import Final, NamedTuple

_FRAMEWORK: Final = f"{Path(__file__).parents[1]}{os.sep}"
_MOORAGE: Final = f"{Path(__file__).parents[2]}{os.sep}"
_IMPORT_MACHINERY: Final = "<frozen importlib"


class ErrorLocation(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


def location_in_plugin(error: BaseException) -> ErrorLocation | None:
    """The last line of a plugin's own file that an error came through; None for moorage's own plugins.

    The frames above the plugin are the framework's and those below are libraries': neither helps to find the
    mistake.
    """
    frames = [frame for frame in _frames(error) if not frame.file.startswith(_FRAMEWORK)]
    if not frames or frames[0].file.startswith(_MOORAGE):
        return None
    return next(frame for frame in reversed(frames) if frame.file == frames[0].file)


def location_in_import(error: BaseException) -> ErrorLocation | None:
    """The last line outside moorage and Python's own machinery that a failing import came through."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return ErrorLocation(error.filename, error.lineno)
    places = [frame for frame in _frames(error) if not frame.file.startswith((_MOORAGE, _IMPORT_MACHINERY))]
    own = [place for place in places if "importlib" not in Path(place.file).parts]
    return own[-1] if own else None


def described(error: BaseException) -> str:
    """An error as in the last line of a traceback: its type and message."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _frames(error: BaseException) -> Iterator[ErrorLocation]:
    return (ErrorLocation(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__))
