"""Files after kills and power failures."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from random import Random

import pytest

from moorage_cluster.chaos.durability.file_operations import (
    SECTOR_BYTES,
    Created,
    Deleted,
    Disk,
    Image,
    Operation,
    Synced,
    Truncated,
    Written,
    images,
)
from moorage_cluster.chaos.durability.recording_vfs import SQLITE_FULL, SQLITE_OK, RecordingVfs


def contents(image: Image) -> dict[str, bytes]:
    return {name: bytes(content) for name, content in image.files.items()}


def test_images() -> None:
    operations: list[Operation] = [
        Created("a"),
        Written("a", 2, b"xy"),
        Truncated("a", 3),
        Written("a", 0, b"z"),
        Deleted("a"),
    ]
    assert [contents(each) for each in images(operations)] == [
        {},
        {"a": b""},
        {"a": b"\0\0xy"},
        {"a": b"\0\0x"},
        {"a": b"z\0x"},
        {},
    ]


def outcomes(*operations: Operation) -> set[tuple[tuple[str, bytes], ...]]:
    """What power failures leave."""
    disk = Disk()
    for each in operations:
        disk.apply(each)
    return {
        tuple(sorted(contents(disk.after_power_failure(Random(seed), 0.5)).items())) for seed in range(200)
    }


def test_what_is_synced_survives() -> None:
    assert outcomes(Created("a"), Written("a", 0, b"x"), Synced("a")) == {(("a", b"x"),)}


def test_what_is_not_synced_survives_in_part() -> None:
    found = outcomes(Created("a"), Synced("a"), Written("a", 0, b"x"), Written("a", SECTOR_BYTES, b"y"))
    gap = bytes(SECTOR_BYTES)
    assert found == {
        (("a", b""),),
        (("a", b"x"),),
        (("a", gap + b"y"),),
        (("a", b"x" + gap[1:] + b"y"),),
    }


def test_a_write_is_torn_between_sectors() -> None:
    data = b"x" * SECTOR_BYTES + b"y"
    found = outcomes(Created("a"), Synced("a"), Written("a", 0, data))
    assert (("a", b"x" * SECTOR_BYTES),) in found
    assert (("a", bytes(SECTOR_BYTES) + b"y"),) in found


def test_names_change_in_order() -> None:
    found = outcomes(Created("a"), Synced("a"), Deleted("a"), Created("b"))
    assert found == {(("a", b""),), (), (("b", b""),)}


def test_a_file_that_is_synced_has_its_name() -> None:
    assert outcomes(Created("a"), Created("b"), Synced("b")) == {(("a", b""), ("b", b""))}


def test_recorded_operations_make_the_same_files(tmp_path: Path) -> None:
    with RecordingVfs(tmp_path) as vfs:
        database = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE t (v)")
        for number in range(50):
            database.execute("INSERT INTO t VALUES (?)", (b"x" * 100 * number,))
        *_, image = images(vfs.operations)
        for name in ("x.db", "x.db-wal"):
            assert bytes(image.files[name]) == (tmp_path / name).read_bytes()
        database.close()
        *_, image = images(vfs.operations)
    assert contents(image) == {"x.db": (tmp_path / "x.db").read_bytes()}


def test_an_operation_that_fails(tmp_path: Path) -> None:
    with RecordingVfs(tmp_path) as vfs:
        database = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        database.execute("CREATE TABLE t (v)")
        vfs.fault = lambda number: SQLITE_OK if vfs.has_failed else SQLITE_FULL
        with pytest.raises(sqlite3.OperationalError, match="full"):
            database.execute("INSERT INTO t VALUES (1)")
        database.execute("INSERT INTO t VALUES (2)")
        assert database.execute("SELECT v FROM t").fetchall() == [(2,)]
        database.close()


def test_other_directories_are_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with RecordingVfs(tmp_path) as vfs:
        database = sqlite3.connect(tmp_path / "other" / "x.db")
        database.execute("CREATE TABLE t (v)")
        database.close()
    assert vfs.operations == []
