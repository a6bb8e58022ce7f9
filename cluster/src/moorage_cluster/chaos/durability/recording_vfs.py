"""A layer between SQLite and the operating system that records each write, and can fail or kill at any.

SQLite reaches files through a table of functions, its VFS. This registers a copy of the default table as the
default, with opening and deleting replaced; and in each file that is opened, writing, truncating and syncing.
The code under test is the unchanged journal on the unchanged SQLite. A system-call tracer would see the same
(there is no shared memory: the journal's locking mode is exclusive), but it is another program, works on
Linux only and cannot make a call fail.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Self

from moorage_cluster.chaos.durability.file_operations import (
    Created,
    Deleted,
    Operation,
    Synced,
    Truncated,
    Written,
)

SQLITE_OK: Final = 0
SQLITE_FULL: Final = 13
SQLITE_IOERR: Final = 10
_RECORDED_TYPES: Final = 0x100 | 0x800 | 0x80000
"""SQLITE_OPEN_MAIN_DB, _MAIN_JOURNAL and _WAL."""
_NAME: Final = b"moorage-recording"

# SQLite keeps the pointers to names, so that these are no `c_char_p`, which would be copied.
_Open = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
)
_Delete = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
_Write = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64)
_Truncate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)
_Sync = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("file_bytes", ctypes.c_int),
        ("max_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("app_data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
        ("delete", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 14),
    )


class _FileMethods(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("close", ctypes.c_void_p),
        ("read", ctypes.c_void_p),
        ("write", ctypes.c_void_p),
        ("truncate", ctypes.c_void_p),
        ("sync", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 13),
    )


class _File(ctypes.Structure):
    _fields_ = (("methods", ctypes.c_void_p),)


class NoRecording(Exception):  # noqa: N818 -- it says what is not possible
    """This Python's SQLite cannot be reached; the message says why."""


def _library() -> ctypes.CDLL:
    """The SQLite that the `sqlite3` module uses."""
    import _sqlite3

    file = getattr(_sqlite3, "__file__", None)
    library = ctypes.CDLL(file)
    try:
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
        library.sqlite3_vfs_register.argtypes = [ctypes.POINTER(_Vfs), ctypes.c_int]
        library.sqlite3_vfs_unregister.argtypes = [ctypes.POINTER(_Vfs)]
    except AttributeError:
        raise NoRecording(
            "this Python has SQLite linked into it, with which file operations cannot be recorded;"
            " use one that loads libsqlite3"
        ) from None
    return library


Fault = Callable[[int], int]
"""Called with the number of an operation before it is done; returns a SQLite error code, or SQLITE_OK."""


def no_fault(number: int) -> int:
    """Nothing fails."""
    return SQLITE_OK


class RecordingVfs:
    """Records what SQLite does to files in a directory, as long as its context lasts.

    known: names of files that exist already. One at a time; connections opened within must be closed within.
    """

    def __init__(self, directory: Path, fault: Fault = no_fault, known: Iterable[str] = ()) -> None:
        self.operations: list[Operation] = []
        self.has_failed = False
        """Whether an operation was made to fail."""
        self.fault = fault
        self._directory = str(directory.resolve())
        self._library = _library()
        self._default = self._library.sqlite3_vfs_find(None)
        self._vfs = _Vfs.from_buffer_copy(self._default.contents)
        self._vfs.name = _NAME
        self._vfs.next = None
        self._real_open = _Open(self._default.contents.open)
        self._real_delete = _Delete(self._default.contents.delete)
        self._files: dict[int, str] = {}
        """Names of files by the address of SQLite's object."""
        self._known: set[str] = set(known)
        """Files that exist."""
        self._tables: dict[int, tuple[_FileMethods, tuple[Any, ...]]] = {}
        """By the address of the original methods: ours, and the functions in it, which must not be freed."""
        self._functions = (_Open(self._open), _Delete(self._delete))
        self._vfs.open, self._vfs.delete = map(_address, self._functions)

    def __enter__(self) -> Self:
        if self._library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1) != SQLITE_OK:
            raise NoRecording(f"SQLite {sqlite3.sqlite_version} takes no other VFS")
        return self

    def __exit__(self, *error: object) -> None:
        self._library.sqlite3_vfs_register(self._default, 1)
        self._library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))

    def _do(self, operation: Operation, act: Callable[[], int]) -> int:
        code = self.fault(len(self.operations))
        if code != SQLITE_OK:
            self.has_failed = True
            return code
        code = act()
        if code == SQLITE_OK:
            self.operations.append(operation)
        return code

    def _recorded_name(self, path: int | None) -> str | None:
        directory, _, name = os.fsdecode(ctypes.string_at(path)).rpartition("/") if path else ("", "", "")
        return name if directory == self._directory else None

    def _open(self, vfs: int, path: int | None, file: int, flags: int, out: int) -> int:
        code: int = self._real_open(vfs, path, file, flags, out)
        name = self._recorded_name(path) if flags & _RECORDED_TYPES else None
        if code == SQLITE_OK and name is not None:
            self._files[file] = name
            if name not in self._known:
                self._known.add(name)
                self.operations.append(Created(name))
            opened = _File.from_address(file)
            opened.methods = ctypes.addressof(self._table(opened.methods))
        return code

    def _delete(self, vfs: int, path: int, sync_directory: int) -> int:
        name = self._recorded_name(path)
        if name is None or name not in self._known:
            return int(self._real_delete(vfs, path, sync_directory))
        code = self._do(Deleted(name), lambda: self._real_delete(vfs, path, sync_directory))
        self._known.discard(name)
        return code

    def _table(self, address: int) -> _FileMethods:
        """Methods of a file that record, in place of those at an address."""
        if address not in self._tables:
            table = _FileMethods.from_buffer_copy(_FileMethods.from_address(address))
            functions = (
                self._write_with(_Write(table.write)),
                self._truncate_with(_Truncate(table.truncate)),
                self._sync_with(_Sync(table.sync)),
            )
            table.write, table.truncate, table.sync = map(_address, functions)
            self._tables[address] = (table, functions)
        return self._tables[address][0]

    def _write_with(self, real: Any) -> Any:
        def write(file: int, data: int, count: int, offset: int) -> int:
            operation = Written(self._files[file], offset, ctypes.string_at(data, count))
            return self._do(operation, lambda: real(file, data, count, offset))

        return _Write(write)

    def _truncate_with(self, real: Any) -> Any:
        def truncate(file: int, size: int) -> int:
            return self._do(Truncated(self._files[file], size), lambda: real(file, size))

        return _Truncate(truncate)

    def _sync_with(self, real: Any) -> Any:
        def sync(file: int, flags: int) -> int:
            return self._do(Synced(self._files[file]), lambda: real(file, flags))

        return _Sync(sync)


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value
