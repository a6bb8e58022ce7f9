"""Data directories of the first format, in which objects had no digests."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from moorage_cluster.apiserver.journal import SqliteJournal
from moorage_cluster.chaos.durability.file_operations import Image
from moorage_cluster.chaos.durability.recording_vfs import RecordingVfs

FORMAT_1 = """
CREATE TABLE object (
    collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    version INTEGER NOT NULL, raw BLOB NOT NULL,
    PRIMARY KEY (collection, namespace, name)
) WITHOUT ROWID;
CREATE TABLE revision (one INTEGER PRIMARY KEY CHECK (one = 1), value INTEGER NOT NULL);
PRAGMA user_version = 1;
"""


def of_format_1(folder: Path) -> dict[str, bytearray]:
    """The files of a database with 30 objects."""
    folder.mkdir(mode=0o700)
    with sqlite3.connect(folder / "objects.db") as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(FORMAT_1)
        for number in range(30):
            raw = b'{"metadata": {"name": "%d"}, "data": "%s"}' % (number, b"x" * 500)
            database.execute("INSERT INTO object VALUES ('/pods', 'n', ?, ?, ?)", (number, number + 2, raw))
        database.execute("INSERT INTO revision VALUES (1, 31)")
    database.close()
    return {path.name: bytearray(path.read_bytes()) for path in folder.iterdir()}


def test_directories_of_the_first_format_are_converted_wherever_that_is_interrupted(tmp_path: Path) -> None:
    files = of_format_1(tmp_path / "data")
    with RecordingVfs(tmp_path / "data", known=files) as vfs:
        SqliteJournal(tmp_path / "data").close()
    assert len(vfs.operations) > 20
    image = Image(files)
    for operation in (*vfs.operations, None):
        image.write(tmp_path / "killed")
        journal = SqliteJournal(tmp_path / "killed")
        assert journal.revision == 31
        found = {obj["metadata"]["name"]: version for _, version, obj in journal.objects()}
        assert found == {str(number): number + 2 for number in range(30)}
        journal.close()
        if operation is not None:
            image.apply(operation)
