"""The lines of bench/trend.csv: what a workload measured in one commit."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import Final

import msgspec

TREND: Final = Path(__file__).parent / "trend.csv"


class Entry(msgspec.Struct, frozen=True):
    """A line of the file."""

    version: str
    commit: str
    date: str
    workload: str
    pods_per_second: int
    """Median of all rounds."""
    cpu_us_per_pod: int | None
    """Microseconds of CPU per pod in the round that took the least."""
    machine: str


def read(text: str) -> list[Entry]:
    """The lines of a file; an empty CPU time is unknown."""
    rows = ({key: value or None for key, value in row.items()} for row in csv.DictReader(StringIO(text)))
    return [msgspec.convert(row, Entry, strict=False) for row in rows]


def write(entries: Iterable[Entry]) -> str:
    """The text of a file."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Entry.__struct_fields__)
    writer.writerows(msgspec.structs.astuple(each) for each in entries)
    return text.getvalue()


def added(old: Iterable[Entry], new: Iterable[Entry]) -> list[Entry]:
    """Old lines and new ones, which replace those of the same commit and workload."""
    kept = {(each.commit, each.workload): each for each in old}
    kept.update({(each.commit, each.workload): each for each in new})
    return list(kept.values())
