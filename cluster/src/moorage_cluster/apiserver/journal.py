"""Objects on disk: one SQLite file in WAL mode, one transaction per write.

A write is committed before it is acknowledged, so a killed process loses nothing that was acknowledged.
By default (`synchronous=NORMAL`), flushing is left to the operating system: writes survive a crash of the
process, not of the machine, after which the last ones may be missing. With `is_synced`, each write is on disk
before it is acknowledged.

Each object is stored with a digest, and the revision with the sum of all digests. SQLite itself does not
notice if a log that is in the database already loses its end: it shows the older pages of the log among newer
ones of the database. Such objects were never there together, and the sum says so.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import msgspec

from moorage.api.manifests import Manifest
from moorage.apimachinery import errors
from moorage_cluster.apiserver.data_directory import DATABASE, prepare
from moorage_cluster.apiserver.store import Key, Stored, decode

_FORMAT = 2
_WITHOUT_DIGESTS = 1
"""The format before there were digests; it is converted."""
_MAX_LOG_BYTES = 16 * 1024 * 1024
"""Maximum bytes of the write-ahead log after a checkpoint."""
_MIN_FREE_PAGES = 1024
_DIGEST_BYTES = 5
"""Bytes of a digest; sums of those of 4 million objects are numbers that SQLite can hold."""
_MAX_TOTAL = 2**62 - 1
_CREATE = """
CREATE TABLE object (
    collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    version INTEGER NOT NULL, digest INTEGER NOT NULL, raw BLOB NOT NULL,
    PRIMARY KEY (collection, namespace, name)
) WITHOUT ROWID;
CREATE TABLE revision (
    one INTEGER PRIMARY KEY CHECK (one = 1), value INTEGER NOT NULL, total INTEGER NOT NULL
);
"""
_BEGIN_AT_FIRST_REVISION = "INSERT INTO revision VALUES (1, 1, digest_of_revision(1));"
_CONVERT = f"""
ALTER TABLE object RENAME TO old_object;
ALTER TABLE revision RENAME TO old_revision;
{_CREATE}
INSERT INTO object SELECT collection, namespace, name, version,
    digest_of(collection, namespace, name, version, raw), raw FROM old_object;
INSERT INTO revision SELECT 1, value,
    (digest_of_revision(value) + (SELECT coalesce(sum(digest), 0) FROM object)) & {_MAX_TOTAL}
    FROM old_revision;
DROP TABLE old_object;
DROP TABLE old_revision;
"""
_ALL = "SELECT collection, namespace, name, version, digest, raw FROM object"
_DIGEST = "SELECT digest FROM object WHERE collection = ? AND namespace = ? AND name = ?"
_PUT = "INSERT OR REPLACE INTO object VALUES (?, ?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM object WHERE collection = ? AND namespace = ? AND name = ?"
_MOVE = "UPDATE revision SET value = ?, total = ?"

log = logging.getLogger(__name__)


class JournalError(Exception):
    """The data directory cannot be used; the message is one line."""


class SqliteJournal:
    """The journal of a data directory; one process at a time.

    is_synced: whether writes survive a power failure, too.
    """

    def __init__(self, directory: Path, *, is_synced: bool = False) -> None:
        self._is_synced = is_synced
        self._path = path = directory / DATABASE
        try:
            prepare(directory)
            self._check_database_exists()
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

    def _check_database_exists(self) -> None:
        """JournalError for a log without its database: SQLite would delete the log, and begin anew."""
        log = self._path.with_name(f"{DATABASE}-wal")
        if not self._path.stat().st_size and log.exists() and log.stat().st_size:
            raise self._damaged("the database is empty, its log is not")

    def _prepare(self) -> None:
        execute = self._connection.execute
        execute("PRAGMA locking_mode = EXCLUSIVE")
        execute("PRAGMA journal_mode = WAL")
        execute(f"PRAGMA synchronous = {'FULL' if self._is_synced else 'NORMAL'}")
        execute(f"PRAGMA journal_size_limit = {_MAX_LOG_BYTES}")
        version = execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _WITHOUT_DIGESTS, _FORMAT):
            raise JournalError(f"{self._path} is of format {version}; this moorage reads format {_FORMAT}")
        if version != _FORMAT:
            self._make_tables(_CONVERT if version == _WITHOUT_DIGESTS else _CREATE + _BEGIN_AT_FIRST_REVISION)
        with self._reading():
            revision, total = execute("SELECT value, total FROM revision").fetchone()
            self._digests = (total - _digest_of_revision(revision)) & _MAX_TOTAL
            """The sum of all objects' digests."""
        self._compact()

    def _make_tables(self, statements: str) -> None:
        """Make the tables in one transaction, so that there is never a part of them."""
        create_function = self._connection.create_function
        create_function("digest_of", 5, _digest_of, deterministic=True)
        create_function("digest_of_revision", 1, _digest_of_revision, deterministic=True)
        self._connection.executescript(f"BEGIN; {statements} PRAGMA user_version = {_FORMAT}; COMMIT")

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
        """All stored objects: collection, revision, object.

        JournalError for a damaged object, and in the end if the objects are not those of one revision.
        """
        digests = 0
        with self._reading():
            for collection, namespace, name, version, digest, raw in self._connection.execute(_ALL):
                if _digest_of(collection, namespace, name, version, raw) != digest:
                    self.close()
                    raise self._damaged(f"{collection} {namespace}/{name} is not what was written")
                digests += digest
                yield collection, version, decode(raw)
        if digests & _MAX_TOTAL != self._digests:
            self.close()
            raise self._damaged("its objects were never there together")

    def _damaged(self, what: str) -> JournalError:
        fix = "restore a copy of the directory, or move it away"
        return JournalError(f"cannot read {self._path}: it is damaged: {what}; {fix}")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, msgspec.DecodeError) as error:
            self.close()
            raise JournalError(f"cannot read {self._path}: {error}") from None
        except TypeError:  # No row, or a value of another type.
            self.close()
            raise self._damaged("a row is not what was written") from None

    def put(self, collection: str, stored: Stored) -> None:
        """Store an object; on return it is committed. ApiError if it cannot be written."""
        namespace, name = stored.key
        digest = _digest_of(collection, namespace, name, stored.version, stored.raw)
        values = (collection, namespace, name, stored.version, digest, stored.raw)
        self._write(_PUT, values, stored.version, digest)

    def delete(self, collection: str, key: Key, version: int) -> None:
        """Delete an object; on return that is committed. ApiError if that cannot be written."""
        self._write(_DELETE, (collection, *key), version, 0)

    def _write(
        self, statement: str, values: tuple[str | int | bytes, ...], version: int, digest: int
    ) -> None:
        """Write an object under a new revision; digest: that of the object, 0 if it is deleted.

        The values begin with the object's collection, namespace and name.
        """
        execute = self._connection.execute
        try:
            execute("BEGIN IMMEDIATE")
            replaced = execute(_DIGEST, values[:3]).fetchone()
            digests = self._digests + digest - (replaced[0] if replaced else 0)
            execute(statement, values)
            execute(_MOVE, (version, (digests + _digest_of_revision(version)) & _MAX_TOTAL))
            execute("COMMIT")
        except BaseException as error:
            # Such as a full disk: this write is rolled back, and the next one starts a new transaction.
            self._connection.rollback()
            if isinstance(error, sqlite3.Error):
                log.error("cannot write to %s: %s", self._path, error)
                raise errors.internal(f"cannot write to the data directory: {error}") from None
            raise
        self._digests = digests & _MAX_TOTAL

    def close(self) -> None:
        """Release the journal for other processes."""
        self._connection.close()


def _digest_of(collection: str, namespace: str, name: str, version: int, raw: bytes) -> int:
    """A number that a change of an object, or of what it is stored as, changes."""
    hashed = blake2b(f"{collection}\0{namespace}\0{name}\0{version}\0".encode(), digest_size=_DIGEST_BYTES)
    hashed.update(raw)
    return int.from_bytes(hashed.digest())


def _digest_of_revision(revision: int) -> int:
    return int.from_bytes(blake2b(str(revision).encode(), digest_size=_DIGEST_BYTES).digest())
