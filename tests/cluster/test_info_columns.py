"""Numbers of pods are computed on reading: they are the same whenever that is."""

from __future__ import annotations

from random import Random

import pytest

from moorage.cluster.pod_table import PodInfo, PodTable
from tests.builders import make_pod

LANES = {"cpu": 0, "memory": 1, "ephemeral-storage": 2}


def info_of(number: int) -> PodInfo:
    name = f"p{number}"
    return PodInfo(make_pod(name, uid=name, priority=number, requests={"cpu": f"{number}m", "memory": "1"}))


@pytest.mark.parametrize("looks", [0.0, 0.02, 1.0])
def test_columns_say_what_the_infos_say(looks: float) -> None:
    random, table = Random(1), PodTable(LANES, ())
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
    assert table.load.values.tolist() == [numbers, [1] * len(numbers), [0] * len(numbers)]
    assert table.scoring_load.values[0].tolist() == [info.load.scoring_cpu_milli for info in table.infos]
    assert not table.holds.values.any()


def test_pods_that_were_worked_out_have_nothing_of_a_new_resource() -> None:
    lanes = dict(LANES)
    table = PodTable(lanes, ())
    table.add("p1", 0, info_of(1))
    assert table.load.values.shape == (3, 1)
    table.add("p2", 0, PodInfo(make_pod("p2", uid="p2", requests={"cpu": "2m", "gpu.org/x": "4"})))
    lanes["gpu.org/x"] = 3
    table.load.add_lane()
    assert table.load.values.tolist() == [[1, 2], [1, 0], [0, 0], [0, 4]]
