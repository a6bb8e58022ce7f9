"""Numbers of pods are computed on reading: they are the same whenever that is."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cluster import pod_table
from moorage.cluster.columns import COLUMN_MAX, clipped, clipped_array
from moorage.cluster.pod_column import PodColumn
from moorage.cluster.pod_table import PodInfo, PodTable
from tests.builders import make_pod

GPU = "example.com/gpu"


def info_of(number: int) -> PodInfo:
    name = f"p{number}"
    return PodInfo(make_pod(name, uid=name, priority=number, requests={"cpu": f"{number}m", "memory": "1"}))


@pytest.mark.parametrize("looks", [0.0, 0.02, 1.0])
def test_columns_say_what_the_infos_say(looks: float) -> None:
    random, table = Random(1), PodTable(())
    here: list[str] = []
    for number in range(1200):
        if here and random.random() < 0.3:
            table.remove(here.pop(random.randrange(len(here))))
        table.add(f"p{number}", 0, info_of(number))
        here.append(f"p{number}")
        if random.random() < looks:
            assert table.priority.values[-1] == number
    numbers = [int(info.pod.uid[1:]) for info in table.infos]
    assert sorted(numbers) == sorted(int(uid[1:]) for uid in here)
    assert table.priority.values.tolist() == numbers
    assert table.load("cpu").tolist() == numbers
    assert table.load("memory").tolist() == [1] * len(numbers)
    assert not table.load(GPU).any()
    assert table.scoring_load.values[0].tolist() == [info.load.scoring_cpu_milli for info in table.infos]
    assert not table.holds.values.any()


def test_columns_are_written_when_they_are_read_and_not_for_each_pod_that_is_removed() -> None:
    table = PodTable(())
    for number in range(5):
        table.add(f"p{number}", 0, info_of(number))
    before = table.priority.values
    table.remove("p1")
    table.remove("p0")
    assert before.tolist() == [0, 1, 2, 3, 4], "as it was read"
    assert table.priority.values.tolist() == [3, 4, 2]


def test_removals_are_followed_before_there_are_too_many() -> None:
    table = PodTable(())
    for number in range(3):
        table.add(f"p{number}", 0, info_of(number))
    assert table.priority.values.tolist() == [0, 1, 2]
    for number in range(3, 20_000):
        table.remove(f"p{number - 3}")
        table.add(f"p{number}", 0, info_of(number))
    assert table.priority._seen > table.written.position - 2 * pod_table._MAX_NEW
    assert table.priority.values.tolist() == [info.pod.priority for info in table.infos]


def test_the_load_of_an_extended_resource_is_followed_like_that_of_cpu() -> None:
    table = PodTable(())
    table.add("p1", 0, info_of(1))
    assert table.load(GPU).tolist() == [0]
    table.add("p2", 0, PodInfo(make_pod("p2", uid="p2", requests={"cpu": "2m", GPU: "4"})))
    assert table.load(GPU).tolist() == [0, 4]
    table.remove("p1")
    assert (table.load(GPU).tolist(), table.load("cpu").tolist()) == ([4], [2])


def test_asking_for_thousands_of_resources_keeps_few_columns() -> None:
    table = PodTable(())
    table.add("p", 0, PodInfo(make_pod("p", uid="p", requests={"cpu": "2m", GPU: "4"})))
    before = len(table._info_columns())
    for number in range(2000):
        assert table.load(f"example.com/{number}").tolist() == [0]
    assert len(table._info_columns()) == before + pod_table._MAX_EXTENDED_LOADS
    assert (table.load(GPU).tolist(), table.load("cpu").tolist()) == ([4], [2])


@given(st.lists(st.integers(0, 1 << 70) | st.integers(COLUMN_MAX - 2, COLUMN_MAX + 2)))
def test_many_amounts_are_clipped_like_one(amounts: list[int]) -> None:
    assert clipped_array(amounts).tolist() == [clipped(amount) for amount in amounts]


def test_a_plugin_has_columns_of_its_own() -> None:
    random, table = Random(2), PodTable(())
    column = PodColumn(np.int64, lambda info: info.priority)
    for number in range(9000):
        table.add(f"p{number}", 0, info_of(number))
        if number % 3 and random.random() < 0.9:
            table.remove(f"p{number}")
        if number in (10, 11, 4000):  # After that, more was removed than is remembered.
            assert column.values(table).tolist() == [info.priority for info in table.infos]
    assert column.values(table).tolist() == [info.priority for info in table.infos]


def test_what_no_row_says_is_read_again_when_it_is_asked_for() -> None:
    table = PodTable(())
    for number in range(3):
        table.add(f"p{number}", 0, info_of(number))
    phases = PodColumn(np.int8, lambda info: info.pod.status.phase == "Running")
    assert phases.values(table).tolist() == [0, 0, 0]
    for number in range(2):
        table.infos[number].pod = make_pod(f"p{number}", uid=f"p{number}", status={"phase": "Running"})
    phases.renew(table, [1, 2])
    assert phases.values(table).tolist() == [0, 1, 0]


def test_a_column_is_that_of_the_table_that_it_is_asked_for() -> None:
    column = PodColumn(np.int64, lambda info: info.priority)
    one, other = PodTable(()), PodTable(())
    one.add("p1", 0, info_of(1))
    other.add("p2", 0, info_of(2))
    other.add("p3", 0, info_of(3))
    assert [column.values(table).tolist() for table in (one, other, one)] == [[1], [2, 3], [1]]
