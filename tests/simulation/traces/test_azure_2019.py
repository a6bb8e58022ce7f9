"""Azure's virtual machines of 2019 (V2)."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.simulation.traces.reading import GIB, assert_bad, assert_unreadable, read, requests

REST = "91.77,0.73,20.95"
GOOD = f"x/Xs+uf,sub,dep,900,3000,{REST},Delay-insensitive,2,4"


def test_machines_are_pods_with_their_buckets_as_requests(tmp_path: Path) -> None:
    path = tmp_path / "vmtable.csv.gz"
    lines = (GOOD, f"a,sub,dep,600,600,{REST},Unknown,>24,>64", f"b,s,d,0,2591700,{REST},Interactive,24,64")
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    pods = read(path)
    assert [(each.name, each.at_seconds, each.duration_seconds) for each in pods] == [
        ("vm-3", 0, 2591700),
        ("vm-2", 600, 300),
        ("vm-1", 900, 2100),
    ]
    assert [requests(each) for each in pods] == [
        {"cpu": "24000m", "memory": str(64 * GIB)},
        {"cpu": "30000m", "memory": str(70 * GIB)},
        {"cpu": "2000m", "memory": str(4 * GIB)},
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("vm,sub,dep,1,2", "5 columns; vmtable has 11"),
        (f"vm,sub,dep,early,2,{REST},Unknown,2,4", "vmcreated: 'early' is not a number of seconds"),
        (f"vm,sub,dep,1,2,{REST},Unknown,>8,4", "vmcorecountbucket: '>8' is not an amount"),
    ],
)
def test_a_bad_line_is_named_or_counted(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "vmtable.csv"
    path.write_text(f"{GOOD}\n{line}\n{GOOD}\n")
    assert_bad(path, f"line 2: {problem}", remaining=2)


def test_an_empty_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "vmtable.csv"
    path.write_text("")
    assert_unreadable(path, "there are no pods in it")
