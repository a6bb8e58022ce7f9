"""Azure's trace for packing: an SQLite database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.traces.reading import GIB, assert_bad, assert_unreadable, read, requests

VM = "CREATE TABLE vm (vmId, tenantId, vmTypeId, priority, starttime, endtime)"
VM_TYPE = "CREATE TABLE vmType (id, vmTypeId, machineId, core, memory, hdd, ssd, nic)"
TYPES = [
    (1, 10, 0, 0.1, 0.2, None, 0.1, 0.1),
    (2, 10, 16, 0.5, 0.25, None, 0.1, 0.1),
    (3, 11, 16, 1.0, 1.0, None, 0.1, 0.1),
    (4, 12, 0, 0.3, 0.4, None, 0.1, 0.1),
    (5, 12, 3, 0.9, 0.9, None, 0.1, 0.1),
    (6, 13, 16, 0.1, 0.1, None, 0.1, 0.1),
]


def database(path: Path, machines: Iterable[tuple[Any, ...]]) -> Path:
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(VM)
        made.execute(VM_TYPE)
        made.executemany("INSERT INTO vmType VALUES (?, ?, ?, ?, ?, ?, ?, ?)", TYPES)
        made.executemany("INSERT INTO vm VALUES (?, ?, ?, ?, ?, ?)", machines)
    return path


def test_machines_are_pods_with_shares_of_one_kind_of_machine(tmp_path: Path) -> None:
    machines = [(5, 1, 11, 1, 0.5, 1.0), (6, 1, 10, 0, -3.5, 0.25), (7, 2, 12, 1, "0.25", None)]
    pods = read(database(tmp_path / "packing_trace_zone_a_v1.sqlite", machines))
    assert [(each.name, each.at_seconds, each.duration_seconds, each.priority) for each in pods] == [
        ("vm-6", 0, 21600, 1000),
        ("vm-7", 21600, None, 0),
        ("vm-5", 43200, 43200, 0),
    ]
    assert [requests(each) for each in pods] == [
        {"cpu": "5000m", "memory": str(25 * GIB)},
        {"cpu": "3000m", "memory": str(40 * GIB)},
        {"cpu": "10000m", "memory": str(100 * GIB)},
    ]


@pytest.mark.parametrize(
    ("machine", "problem"),
    [
        ((2, 1, 99, 1, 0.5, 1.0), "vmTypeId: there is no type 99 in vmType"),
        ((2, 1, 10, 1, None, 1.0), "starttime: None is not a number"),
        ((2, 1, 10, 1, 2.0, 1.0), "endtime: 1.0 is before the start"),
        ((2, 1, 10, "high", 0.5, 1.0), "priority: 'high' is not an integer"),
    ],
)
def test_a_bad_row_is_named_or_counted(tmp_path: Path, machine: tuple[Any, ...], problem: str) -> None:
    good = [(1, 1, 10, 0, 0.0, 1.0), (3, 1, 10, 0, 5.0, 6.0)]
    path = database(tmp_path / "t.sqlite", [good[0], machine, good[1]])
    assert_bad(path, f"row 2: {problem}", remaining=2)


def test_files_that_are_none_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    assert_unreadable(path, "No such file or directory")
    path.write_bytes(b"binary junk" * 1000)
    assert_unreadable(path, "not a readable SQLite database: file is not a database")
    path.write_bytes(b"")
    assert_unreadable(path, "there is no table vm")
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE vm (vmId, vmTypeId)")
    assert_unreadable(path, "table vm has no column priority")
    path.unlink()
    assert_unreadable(database(path, []), "there are no pods in it")
    path.write_bytes(path.read_bytes()[:3000])
    assert_unreadable(path, "not a readable SQLite database: ")
