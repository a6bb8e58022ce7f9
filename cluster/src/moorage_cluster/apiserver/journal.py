"""Objects on disk: one SQLite file in WAL mode, one transaction per write.

A write is committed before it is acknowledged, so a killed process loses nothing that was acknowledged.
`synchronous=NORMAL` leaves the flushing to the operating system: writes survive a crash of the process, not
of the machine.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.data_directory import DATABASE, prepare
from moorage_cluster.apiserver.store import Key, Stored, decode

_FORMAT = 1
_MAX_LOG_BYTES = 16 * 1024 * 1024
"""Maximum bytes of the write-ahead log after a checkpoint."""
_MIN_FREE_PAGES = 1024
_TABLES = """
CREATE TABLE IF NOT EXISTS object (
    collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    version INTEGER NOT NULL, raw BLOB NOT NULL,
    PRIMARY KEY (collection, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revision (one INTEGER PRIMARY KEY CHECK (one = 1), value INTEGER NOT NULL);
INSERT OR IGNORE INTO revision VALUES (1, 1);
"""
_PUT = "INSERT OR REPLACE INTO object VALUES (?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM object WHERE collection = ? AND namespace = ? AND name = ?"
_MOVE = "UPDATE revision SET value = ?"


class JournalError(Exception):
    """The data directory cannot be used; the message is one line."""


class SqliteJournal:
    """The journal of a data directory; one process at a time."""

    def __init__(self, directory: Path) -> None:
        self._path = path = directory / DATABASE
        try:
            prepare(directory)
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=0)
            try:
                self._prepare()
            except BaseException:
                self.close()
                raise
        except OSError as error:
            raise JournalError(f"cannot use {path}: {error.strerror or error}") from None
        except sqlite3.Error as error:
            reason = "another process uses it" if "locked" in str(error) else str(error)
            raise JournalError(f"cannot use {path}: {reason}") from None

    def _prepare(self) -> None:
        execute = self._connection.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA journal_mode = WAL")
        execute("PRAGMA synchronous = NORMAL")
        execute(f"PRAGMA journal_size_limit = {_MAX_LOG_BYTES}")
        version = execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _FORMAT):
            raise JournalError(f"{self._path} is of format {version}; this moorage reads format {_FORMAT}")
        self._connection.executescript(_TABLES)
        execute(f"PRAGMA user_version = {_FORMAT}")
        self._compact()

    def _compact(self) -> None:
        """Release the space of deleted objects, if that is most of the file."""
        free, pages = (
            self._connection.execute(f"PRAGMA {what}").fetchone()[0]
            for what in ("freelist_count", "page_count")
        )
        if free > _MIN_FREE_PAGES and 2 * free > pages:
            self._connection.execute("VACUUM")

    @property
    def revision(self) -> int:
        """The revision of the last write."""
        with self._reading():
            value: int = self._connection.execute("SELECT value FROM revision").fetchone()[0]
        return value

    def objects(self) -> Iterator[tuple[str, int, Manifest]]:
        """All stored objects: collection, revision, object."""
        with self._reading():
            for collection, version, raw in self._connection.execute(
                "SELECT collection, version, raw FROM object"
            ):
                yield collection, version, decode(raw)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, msgspec.DecodeError) as error:
            self.close()
            raise JournalError(f"cannot read {self._path}: {error}") from None

    def put(self, collection: str, stored: Stored) -> None:
        """Store an object; on return it is committed."""
        self._write(_PUT, (collection, *stored.key, stored.version, stored.raw), stored.version)

    def delete(self, collection: str, key: Key, version: int) -> None:
        """Delete an object; on return that is committed."""
        self._write(_DELETE, (collection, *key), version)

    def _write(self, statement: str, values: tuple[str | int | bytes, ...], version: int) -> None:
        execute = self._connection.execute
        try:
            execute("BEGIN IMMEDIATE")
            execute(statement, values)
            execute(_MOVE, (version,))
            execute("COMMIT")
        except BaseException:
            # Such as a full disk: this write is rolled back, and the next one starts a new transaction.
            self._connection.rollback()
            raise

    def close(self) -> None:
        """Release the journal for other processes."""
        self._connection.close()
