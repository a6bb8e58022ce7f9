"""Sorting on disk, against sorting in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.decode import InputError
from moorage.simulation.traces import disk_sort
from moorage.simulation.traces.disk_sort import DiskSorter, sorted_on_disk


class Item(msgspec.Struct, frozen=True, array_like=True):
    key: int
    number: int


def sorter(in_memory: int = 3) -> DiskSorter[Item]:
    return DiskSorter(Item, lambda item: item.key, in_memory)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files are; runs are merged as soon as there are three of a level."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(disk_sort, "_MAX_RUNS_IN_LEVEL", 3)
    return tmp_path


@pytest.mark.hypothesis
def test_items_come_in_order_and_equal_ones_as_they_were_added(folder: Path) -> None:
    @settings(max_examples=30)
    @given(st.lists(st.integers(0, 9), max_size=60))
    def check(keys: list[int]) -> None:
        items = [Item(key, number) for number, key in enumerate(keys)]
        sorting = sorter()
        for item in items:
            sorting.add(item)
        assert (list(folder.iterdir()) != []) is (len(items) >= 3)
        assert list(sorting.in_order()) == sorted(items, key=lambda item: item.key)
        assert list(folder.iterdir()) == []

    check()


def test_temporary_files_are_removed_when_the_rest_is_not_read(folder: Path) -> None:
    sorting = sorter()
    for number in range(20):
        sorting.add(Item(-number, number))
    assert list(folder.iterdir()) != []
    in_order = sorting.in_order()
    assert next(in_order).number == 19
    in_order.close()
    assert list(folder.iterdir()) == []


def test_temporary_files_are_removed_when_reading_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_sort, "_MAX_ITEMS_IN_MEMORY", 3)
    monkeypatch.setattr(disk_sort.DiskSorter.__init__, "__defaults__", (3,))

    def items() -> Iterator[Item]:
        yield from (Item(0, number) for number in range(9))
        assert list(folder.iterdir()) != []
        raise InputError("trace.csv", "a broken gzip file")

    with pytest.raises(InputError):
        sorted_on_disk(items(), Item, lambda item: item.key, lambda: None)
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "none"))
    sorting = sorter(1)
    with pytest.raises(InputError, match="cannot sort: No such file or directory"):
        sorting.add(Item(1, 1))
