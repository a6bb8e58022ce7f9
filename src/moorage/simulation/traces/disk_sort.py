"""Sorting more than memory holds: sorted runs in a temporary folder, which are merged.

The folder is where `tempfile` puts files (`TMPDIR`), and is removed with the sorter, or at the end of the
process.
"""

from __future__ import annotations

import heapq
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, Generic, TypeVar
from weakref import finalize

import msgspec

from moorage.api.decode import InputError

ItemT = TypeVar("ItemT", bound=msgspec.Struct)

_MAX_ITEMS_IN_MEMORY: Final = 100_000
"""Number of items after which a run is written."""
_MAX_RUNS_IN_LEVEL: Final = 64
"""Number of runs that become one: each that is read has an open file."""
_LENGTH_BYTES: Final = 4


class DiskSorter(Generic[ItemT]):
    """Items in the order of a key; equal ones in the order in which they were added."""

    def __init__(
        self, kind: type[ItemT], key: Callable[[ItemT], Any], max_in_memory: int = _MAX_ITEMS_IN_MEMORY
    ) -> None:
        self._key = key
        self._max_in_memory = max_in_memory
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._items: list[ItemT] = []
        self._levels: list[list[Path]] = []
        """Runs that were written; those of the next level are each made of many, and older."""
        self._written = 0
        self._folder: Path | None = None
        self.close: Callable[[], object] = lambda: None
        """Removes the temporary files."""

    def add(self, item: ItemT) -> None:
        """Add an item; InputError if there is no room for it."""
        self._items.append(item)
        if len(self._items) >= self._max_in_memory:
            self._spill()

    def in_order(self) -> Generator[ItemT]:
        """All items, once; the temporary files are removed after the last."""
        self._items.sort(key=self._key)
        runs = [self._read(path) for level in reversed(self._levels) for path in level]
        try:
            yield from heapq.merge(*runs, self._items, key=self._key)
        finally:
            self.close()

    def _spill(self) -> None:
        self._items.sort(key=self._key)
        try:
            self._add_run(self._write(self._items), 0)
        except OSError as error:
            self.close()
            raise InputError(error.filename or "temporary files", f"cannot sort: {error.strerror}") from None
        self._items = []

    def _add_run(self, run: Path, level: int) -> None:
        if level == len(self._levels):
            self._levels.append([])
        runs = self._levels[level]
        runs.append(run)
        if len(runs) == _MAX_RUNS_IN_LEVEL:
            merged = self._write(heapq.merge(*map(self._read, runs), key=self._key))
            for each in runs:
                each.unlink()
            runs.clear()
            self._add_run(merged, level + 1)

    def _write(self, items: Iterable[ItemT]) -> Path:
        if self._folder is None:
            self._folder = Path(mkdtemp(prefix="moorage-sort-"))
            self.close = finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._written += 1
        path = self._folder / str(self._written)
        with path.open("wb") as file:
            for item in items:
                encoded = self._encode(item)
                file.write(len(encoded).to_bytes(_LENGTH_BYTES))
                file.write(encoded)
        return path

    def _read(self, path: Path) -> Iterator[ItemT]:
        with path.open("rb") as file:
            while length := file.read(_LENGTH_BYTES):
                yield self._decode(file.read(int.from_bytes(length)))


def sorted_on_disk(
    items: Iterable[ItemT], kind: type[ItemT], key: Callable[[ItemT], Any], added: Callable[[], None]
) -> Iterator[ItemT]:
    """Items in the order of a key; all are read at once, `added` is called for each."""
    sorter = DiskSorter(kind, key)
    try:
        for item in items:
            sorter.add(item)
            added()
    except BaseException:
        sorter.close()
        raise
    return sorter.in_order()
