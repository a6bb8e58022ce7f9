"""The file of a trace: its lines as rows, with an error or a note for each that cannot be read."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import msgspec

from moorage.api.decode import InputError
from moorage.simulation.traces.pods import TracePod
from moorage.simulation.traces.units import DEFAULT_UNITS, TraceUnits

_MAX_LINE_CHARACTERS: Final = 16 * 1024 * 1024
"""Maximum length of a line, in characters: a file without line breaks is not read into memory."""

_read_json: Final = msgspec.json.Decoder().decode

BadLine = Callable[[str], None]
"""Called with the message about a line that is skipped."""
Cells = Sequence[str]
Row = dict[str, Any]
"""Values by the names of columns; empty ones are left out."""
RowT = TypeVar("RowT")


class BadLineError(ValueError):
    """A line that is no pod."""


@dataclass(frozen=True, slots=True)
class TraceSource:
    """A trace that is read."""

    path: Path
    units: TraceUnits = DEFAULT_UNITS
    skipped: BadLine | None = None

    def bad(self, line: int, reason: str, unit: str = "line") -> None:
        """A line cannot be read: InputError, or a note if such lines are skipped."""
        if self.skipped is None:
            raise InputError(f"{self.path}: {unit} {line}", reason)
        self.skipped(f"{self.path}: {unit} {line}: {reason}")

    def pods(
        self,
        rows: Iterable[tuple[int, RowT]],
        read: Callable[[int, RowT], Iterable[TracePod]],
        unit: str = "line",
    ) -> Iterator[TracePod]:
        """The pods of rows; `read` raises BadLineError for a row that cannot be one."""
        for line, row in rows:
            try:
                found = read(line, row)
            except BadLineError as error:
                self.bad(line, str(error), unit)
            else:
                yield from found

    def cells(self) -> Iterator[tuple[int, Cells]]:
        """The lines of a table, with their numbers; empty lines are left out."""
        with self._opened() as file:
            reader = csv.reader(self._lines(file))
            while True:
                try:
                    cells = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    self.bad(reader.line_num, str(error))
                    continue
                if cells:
                    yield reader.line_num, cells

    def table(self, needed: Iterable[str]) -> Iterator[tuple[int, Row]]:
        """The rows of a table with a header; InputError if that lacks a column."""
        rows = self.cells()
        line, header = next(rows, (1, ()))
        for name in needed:
            if header and name not in header:
                raise InputError(f"{self.path}: line {line}", f"the header has no column {name}")
        for line, cells in rows:
            if len(cells) == len(header):
                yield line, {name: cell for name, cell in zip(header, cells, strict=True) if cell}
            else:
                self.bad(line, f"{columns(len(cells))}; the header has {len(header)}")

    def objects(self) -> Iterator[tuple[int, Row]]:
        """The objects of a file with one a line."""
        with self._opened() as file:
            for line, text in enumerate(self._lines(file), 1):
                try:
                    row = _read_json(text) if text.strip() else None
                except (msgspec.DecodeError, RecursionError) as error:
                    self.bad(line, f"not JSON: {error}")
                    continue
                if isinstance(row, dict):
                    yield line, row
                elif text.strip():
                    self.bad(line, "not an object")

    def _lines(self, file: TextIO) -> Iterator[str]:
        line = 0
        while text := file.readline(_MAX_LINE_CHARACTERS):
            line += 1
            if len(text) == _MAX_LINE_CHARACTERS:
                raise InputError(f"{self.path}: line {line}", f"longer than {len(text):,} characters")
            yield text

    @contextmanager
    def _opened(self) -> Iterator[TextIO]:
        path = self.path
        try:
            with (
                gzip.open(path, "rt", encoding="utf-8", newline="")
                if path.suffix == ".gz"
                else path.open(encoding="utf-8", newline="")
            ) as file:
                yield file
        except UnicodeDecodeError:
            raise InputError(str(path), "not UTF-8 text") from None
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise InputError(str(path), "a broken gzip file") from None
        except OSError as error:
            raise InputError(str(path), error.strerror or str(error)) from None


def columns(count: int) -> str:
    """A number of columns."""
    return "1 column" if count == 1 else f"{count} columns"
