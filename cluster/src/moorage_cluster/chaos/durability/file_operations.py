"""What SQLite did to its files, as data, and the files after any part of it.

A killed process leaves the files as they are after some operation. A power failure leaves what was synced,
and any part of what was not: of each sector of 512 bytes some content that was written since, and creations
and deletions of files in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Final

import msgspec

SECTOR_BYTES: Final = 512
"""Bytes that a disk writes as a whole."""


class Created(msgspec.Struct, frozen=True):
    """A new, empty file."""

    file: str


class Written(msgspec.Struct, frozen=True):
    """Bytes of a file."""

    file: str
    offset: int
    data: bytes


class Truncated(msgspec.Struct, frozen=True):
    """A file was set to a size."""

    file: str
    size: int


class Synced(msgspec.Struct, frozen=True):
    """What was done to a file so far is on disk."""

    file: str


class Deleted(msgspec.Struct, frozen=True):
    """A file is gone."""

    file: str


Operation = Created | Written | Truncated | Synced | Deleted
_Change = Written | Truncated


class Image:
    """The content of files by name."""

    def __init__(self, files: dict[str, bytearray] | None = None) -> None:
        self.files: dict[str, bytearray] = files if files is not None else {}

    def apply(self, operation: Operation) -> None:
        """Do an operation."""
        match operation:
            case Created(file):
                self.files.setdefault(file, bytearray())
            case Deleted(file):
                self.files.pop(file, None)
            case Written() | Truncated():
                change(self.files[operation.file], operation)
            case Synced():
                pass

    def write(self, directory: Path) -> None:
        """Write the files into a directory, in place of all that is there."""
        directory.mkdir(exist_ok=True, mode=0o700)
        for path in directory.iterdir():
            path.unlink()
        for name, content in self.files.items():
            (directory / name).write_bytes(content)

    def copy(self) -> Image:
        """A copy that can be changed."""
        return Image({name: bytearray(content) for name, content in self.files.items()})


def change(content: bytearray, operation: _Change) -> None:
    """Write to a file, or truncate it; bytes between are zero."""
    begin = operation.offset if isinstance(operation, Written) else operation.size
    if len(content) < begin:
        content.extend(bytes(begin - len(content)))
    if isinstance(operation, Written):
        content[begin : begin + len(operation.data)] = operation.data
    else:
        del content[begin:]


class _Inode:
    """A file, be it under a name or not: what is on disk, and what is not yet."""

    def __init__(self) -> None:
        self.synced = bytearray()
        self.pending: list[_Change] = []

    def sync(self) -> None:
        for each in self.pending:
            change(self.synced, each)
        self.pending.clear()

    def survivors(self, random: Random, share: float) -> bytearray:
        """What is left after a power failure; share: of the sectors written that reached the disk."""
        content = bytearray(self.synced)
        for each in self.pending:
            if isinstance(each, Truncated):
                if random.random() < share:
                    change(content, each)
                continue
            for sector in _sectors(each):
                if random.random() < share:
                    change(content, sector)
        return content


def _sectors(written: Written) -> Iterator[Written]:
    begin, end = written.offset, written.offset + len(written.data)
    while begin < end:
        until = min(end, (begin // SECTOR_BYTES + 1) * SECTOR_BYTES)
        yield Written(written.file, begin, written.data[begin - written.offset : until - written.offset])
        begin = until


class Disk:
    """Files of which a part may not be on disk yet."""

    def __init__(self) -> None:
        self._names: dict[str, _Inode] = {}
        """The files as a process sees them."""
        self._durable_names: dict[str, _Inode] = {}
        self._pending_names: list[tuple[str, _Inode | None]] = []
        """Creations and deletions (None) that are not on disk yet."""

    def apply(self, operation: Operation) -> None:
        """Do an operation."""
        match operation:
            case Created(file):
                if file not in self._names:
                    self._rename(file, _Inode())
            case Deleted(file):
                self._rename(file, None)
            case Written(file) | Truncated(file):
                self._names[file].pending.append(operation)
            case Synced(file):
                self._sync(file)

    def _rename(self, file: str, inode: _Inode | None) -> None:
        self._pending_names.append((file, inode))
        _put(self._names, file, inode)

    def _sync(self, file: str) -> None:
        """A file's data and its name are on disk: a journaling file system keeps the order of names."""
        inode = self._names[file]
        inode.sync()
        names = [each for _, each in self._pending_names]
        if inode in names:
            self._keep_names(names.index(inode) + 1)

    def _keep_names(self, count: int) -> None:
        for file, inode in self._pending_names[:count]:
            _put(self._durable_names, file, inode)
        del self._pending_names[:count]

    def after_power_failure(self, random: Random, share: float) -> Image:
        """What may be left; share: of what was not synced, the part that reached the disk."""
        names = dict(self._durable_names)
        count = len(self._pending_names)
        kept = round(count * share) if share in (0.0, 1.0) else random.randint(0, count)
        for file, inode in self._pending_names[:kept]:
            _put(names, file, inode)
        return Image({file: inode.survivors(random, share) for file, inode in names.items()})


def _put(names: dict[str, _Inode], file: str, inode: _Inode | None) -> None:
    if inode is None:
        names.pop(file, None)
    else:
        names[file] = inode


def images(operations: Iterable[Operation]) -> Iterator[Image]:
    """The files after no operation, after one, and so on; each is valid until the next."""
    image = Image()
    yield image
    for operation in operations:
        image.apply(operation)
        yield image
