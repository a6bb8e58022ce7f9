"""Results on disk: a line for each task that has ended, known by its key.

Lines are only appended, each in one write: what ends in the middle of one loses that line alone, which is
dropped when the file is opened again. One sweep at a time writes a file.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import BinaryIO, Self

import msgspec

from moorage.api.decode import InputError
from moorage.sweep.figures import Figures


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: str
    figures: Figures


class ResultStore:
    """The results in a file; a context manager."""

    def __init__(self, path: Path, *, is_fresh: bool = False) -> None:
        """is_fresh: whether results that are there are dropped."""
        self._path = path
        self.figures: dict[str, Figures] = {}
        """The figures of tasks by key."""
        self._file = self._opened()
        try:
            self._load(is_fresh)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, key: str, figures: Figures) -> None:
        """Add the figures of a task; InputError if they cannot be written."""
        line = msgspec.json.encode(_Line(key, figures)) + b"\n"
        try:
            self._file.write(line)
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unusable(error.strerror) from None
        self.figures[key] = figures

    def _opened(self) -> BinaryIO:
        """The file, for this process alone."""
        try:
            file = self._path.open("a+b", buffering=0)
        except OSError as error:
            raise self._unusable(error.strerror) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise InputError(str(self._path), "another sweep writes it") from None
        return file

    def _load(self, is_fresh: bool) -> None:
        self._file.seek(0)
        *lines, rest = b"".join(self._file).split(b"\n") if not is_fresh else [b""]
        for number, line in enumerate(lines, 1):
            try:
                decoded = msgspec.json.decode(line, type=_Line)
            except msgspec.DecodeError:
                raise InputError(
                    f"{self._path}: line {number}", "no result of a sweep; --fresh begins again"
                ) from None
            self.figures[decoded.key] = decoded.figures
        if rest or is_fresh:
            self._file.truncate(sum(len(line) + 1 for line in lines))

    def _unusable(self, reason: str | None) -> InputError:
        return InputError(str(self._path), f"cannot be written: {reason}")
