"""Alibaba's cluster-trace-v2018: tasks, instances and containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.traces.reading import GIB, assert_bad, assert_unreadable, read, requests

TASKS = """\
M2_1,1,j_2,1,Terminated,500,560,100,0.5
M1,3,j_1,1,Terminated,100,160,50.0,2
task_Nzg3==,1,j_3,1,Running,300,0,,
R9,1,j_4,1,Waiting,0,0,100,0.3
M7,1,j_5,1,Failed,400,399,100,101
"""


def test_a_task_is_a_pod_for_each_instance_in_the_order_of_arrival(tmp_path: Path) -> None:
    path = tmp_path / "batch_task.csv"
    path.write_text(TASKS)
    pods = read(path)
    assert [(each.name, each.at_seconds, each.duration_seconds) for each in pods] == [
        ("j-1-m1-2-0", 100, 60),
        ("j-1-m1-2-1", 100, 60),
        ("j-1-m1-2-2", 100, 60),
        ("j-3-task-nzg3-3", 300, None),
        ("j-5-m7-5", 400, None),
        ("j-2-m2-1-1", 500, 60),
    ]
    assert requests(pods[0]) == {"cpu": "500m", "memory": str(2 * GIB)}
    assert requests(pods[3]) == {}
    assert requests(pods[4]) == {"cpu": "1000m"}, "101 is no memory"
    assert requests(pods[5]) == {"cpu": "1000m", "memory": str(GIB // 2)}


def test_an_instance_requests_what_it_used_at_most(tmp_path: Path) -> None:
    path = tmp_path / "batch_instance.csv"
    path.write_text("ins_7,M1,j_1,1,Terminated,10,15,m_9,1,1,20,80,0.1,0.25\n")
    (pod,) = read(path)
    assert (pod.name, pod.at_seconds, pod.duration_seconds) == ("ins-7-1", 10, 5)
    assert requests(pod) == {"cpu": "800m", "memory": str(GIB // 4)}


def test_a_container_arrives_once_and_has_no_end(tmp_path: Path) -> None:
    path = tmp_path / "container_meta.csv"
    path.write_text(
        "c_1,m_2556,0,app_5052,started,400,400,1.5\n"
        "c_1,m_2556,287942,app_5052,started,400,400,1.5\n"
        "c_2,m_2,70,app_5,allocated,800,800,-1\n"
    )
    first, second = read(path)
    assert (first.name, first.at_seconds, first.duration_seconds) == ("c-1-1", 0, None)
    assert requests(first) == {"cpu": "4000m", "memory": str(3 * GIB // 2)}
    assert (second.name, second.at_seconds, requests(second)) == ("c-2-3", 70, {"cpu": "8000m"})


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("M1,3,j_1,1,Terminated,100,160,50", "8 columns; batch_task has 9"),
        ("M1,many,j_1,1,Terminated,100,160,50,2", "instance_num: 'many' is not an integer"),
        (
            "M1,9999999999,j_1,1,Terminated,1,2,50,2",
            "instance_num: 9999999999 is not a number from 0 to 1,000,000",
        ),
        ("M1,1,j_1,1,Terminated,now,160,50,2", "start_time: 'now' is not a number of seconds"),
        ("M1,1,j_1,1,Terminated,100,160,nan,2", "plan_cpu: 'nan' is not a number"),
    ],
)
def test_a_bad_line_is_named_or_counted(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "batch_task.csv"
    good = "M1,1,j_1,1,Terminated,100,160,50,2"
    path.write_text(f"{good}\n{line}\n{good}\n")
    assert_bad(path, f"line 2: {problem}", remaining=2)


def test_a_first_line_of_no_table_is_named(tmp_path: Path) -> None:
    path = tmp_path / "batch_task.csv"
    path.write_text("junk\nM1,1,j_1,1,Terminated,100,160,50,2\n")
    known = "batch_task has 9, batch_instance has 14, container_meta has 8"
    assert_bad(path, f"line 1: 1 column; {known}", remaining=1)


def test_files_that_are_none_are_one_line(tmp_path: Path) -> None:
    for content, problem in ((b"", "there are no pods in it"), (b"\xff\xfe", "not UTF-8 text")):
        path = tmp_path / "batch_task.csv"
        path.write_bytes(content)
        assert_unreadable(path, problem)
