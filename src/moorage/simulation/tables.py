"""Tables as files: CSV, plain or compressed, and Parquet."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

from moorage.api.decode import InputError

CSV: Final = ".csv"
PARQUET: Final = ".parquet"
_ROWS_IN_GROUP: Final = 65_536
"""Number of rows in a row group of a Parquet file: as many are in memory."""


def form_of(path: Path, forms: Sequence[str], what: str) -> str:
    """The form of a file by its name; InputError if it is none of these, or its library is missing.

    what: what the file is, for the error.
    """
    form = next((each for each in forms if path.name.endswith(each)), None)
    if form is None:
        raise InputError(str(path), f"the name of a {what} ends in {', '.join(forms)}")
    if form == PARQUET:
        need_pyarrow(path)
    return form


def need_pyarrow(path: Path) -> None:
    """InputError if Parquet files cannot be read and written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise InputError(str(path), "needs pyarrow: pip install 'moorage[parquet]'") from None


class Column(NamedTuple):
    """A column; any value may be missing (None)."""

    name: str
    kind: type
    """float, int or str."""


def write_table(path: Path, form: str, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as `.csv`, `.csv.gz` or `.parquet`; OSError if that is not possible."""
    if form == PARQUET:
        _write_parquet(path, columns, rows)
        return
    with text_file(path, form) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([column.name for column in columns])
        writer.writerows(rows)


@contextmanager
def text_file(path: Path, form: str) -> Iterator[TextIO]:
    """A text file to write to, compressed if its form ends in `.gz`: equal texts are equal bytes."""
    with path.open("wb") as raw:
        if not form.endswith(".gz"):
            with io.TextIOWrapper(raw, encoding="utf-8", newline="") as file:
                yield file
            return
        packed = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
        with packed, io.TextIOWrapper(packed, encoding="utf-8", newline="") as file:
            yield file


def _write_parquet(path: Path, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> None:
    import pyarrow
    from pyarrow import parquet

    types = {float: pyarrow.float64(), int: pyarrow.int64(), str: pyarrow.string()}
    schema = pyarrow.schema([(column.name, types[column.kind]) for column in columns])
    remaining = iter(rows)
    with path.open("wb") as file, parquet.ParquetWriter(file, schema) as writer:
        while group := list(islice(remaining, _ROWS_IN_GROUP)):
            arrays = zip(schema.types, zip(*group, strict=True), strict=True)
            writer.write_table(
                pyarrow.table([pyarrow.array(values, type) for type, values in arrays], schema=schema)
            )
