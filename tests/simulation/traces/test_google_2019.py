"""Google's ClusterData 2019: events of instances and collections, paired to pods."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.simulation.traces.reading import GIB, assert_bad, assert_unreadable, read, requests

SUBMIT, ENABLE, SCHEDULE, EVICT, FINISH, KILL, LOST, UPDATE_PENDING, UPDATE_RUNNING = (
    0,
    2,
    3,
    4,
    6,
    7,
    8,
    9,
    10,
)
AFTER_THE_END = 2**63 - 1


def event(seconds: float, type: int | str, collection: int = 1, instance: int = 0, **more: Any) -> Any:
    """An event some seconds after the start of the trace, as BigQuery exports it."""
    time = str(round((600 + seconds) * 1_000_000))
    fields = {"time": time, "type": type, "collection_id": str(collection), "instance_index": str(instance)}
    return {**fields, **more}


def asks(cpus: float, memory: float) -> dict[str, Any]:
    return {"resource_request": {"cpus": cpus, "memory": memory}}


EVENTS = [
    event(10, SUBMIT, 1, 0, priority="200", **asks(0.5, 0.25)),
    event(11, ENABLE, 1, 0, priority="200", **asks(0.5, 0.25)),
    event(20, SCHEDULE, 1, 0, priority="200", **asks(0.5, 0.25)),
    event(25, UPDATE_RUNNING, 1, 0, priority="200", **asks(0.9, 0.25)),
    event(50, EVICT, 1, 0, priority="200"),
    event(51, SUBMIT, 1, 0, priority="360", **asks(0.1, 0.1)),
    event(52, UPDATE_PENDING, 1, 0, priority="360", **asks(0.2, 0.1)),
    event(60, SCHEDULE, 1, 0, priority="360", **asks(0.2, 0.1)),
    event(5, SUBMIT, 1, 1, resource_request=None),
    event(8, KILL, 1, 1),
    event(9, LOST, 1, 1),
    event(30, "SUBMIT", 2, 0, alloc_collection_id="7"),
    event(4, SUBMIT, 7, 0, collection_type="1", **asks(1, 1)),
    {**event(0, ENABLE, 8), "time": "0"},
    {**event(0, FINISH, 8), "time": str(AFTER_THE_END)},
]


@pytest.mark.parametrize("form", ["json", "jsonl.gz", "csv"])
def test_events_in_any_order_become_attempts(tmp_path: Path, form: str) -> None:
    events = list(EVENTS)
    Random(7).shuffle(events)
    path = tmp_path / f"instance_events-000000000000.{form}"
    if form == "csv":
        _write_table(path, events)
    else:
        text = "".join(json.dumps(each) + "\n" for each in events).encode()
        path.write_bytes(gzip.compress(text[:300]) + gzip.compress(text[300:]) if form[-2:] == "gz" else text)
    pods = read(path)
    found = [(each.name, each.at_seconds, each.duration_seconds, each.priority) for each in pods]
    assert found == [
        ("8-0", 0, None, 0),
        ("7-0", 4, None, 0),
        ("1-1", 5, 3, 0),
        ("1-0", 10, 30, 200),
        ("1-0-1", 51, None, 360),
    ]
    assert [requests(each) for each in pods] == [
        {},
        {"cpu": "10000m", "memory": str(100 * GIB)},
        {},
        {"cpu": "5000m", "memory": str(25 * GIB)},
        {"cpu": "2000m", "memory": str(10 * GIB)},
    ]


def _write_table(path: Path, events: list[Any]) -> None:
    with path.open("w", newline="") as file:
        rows = [_flat(each) for each in events]
        writer = csv.DictWriter(file, sorted({name for row in rows for name in row}))
        writer.writeheader()
        writer.writerows(rows)


def _flat(event: Any) -> dict[str, Any]:
    requested = event.get("resource_request") or {}
    plain = {name: value for name, value in event.items() if name != "resource_request"}
    return plain | {f"resource_request.{name}": value for name, value in requested.items()}


def test_a_collection_is_a_pod_without_requests(tmp_path: Path) -> None:
    path = tmp_path / "collection_events.json"
    submitted, finished = event(1, SUBMIT, 5, priority=103, user="u"), event(9, FINISH, 5)
    del submitted["instance_index"], finished["instance_index"]
    path.write_text(f"{json.dumps(submitted)}\n{json.dumps(finished)}\n")
    (pod,) = read(path)
    assert (pod.name, pod.duration_seconds, pod.priority, requests(pod)) == ("5-0", 8, 103, {})


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"type": 0, "collection_id": "1"}', "time is missing"),
        ('{"time": "-5", "type": 0, "collection_id": "1"}', "time: -5e-06 is not a number of seconds"),
        ('{"time": "5", "type": 11, "collection_id": "1"}', "type: 11 is not a type of events"),
        ('{"time": "5", "type": "START", "collection_id": "1"}', "type: 'START' is not an integer"),
        ('{"time": "5", "type": 0, "collection_id": "x"}', "collection_id: 'x' is not an integer"),
        (
            '{"time": "5", "type": 0, "collection_id": "1", "resource_request": {"cpus": -1}}',
            "resource_request.cpus: -1 is not an amount",
        ),
        (
            '{"time": "5", "type": 0, "collection_id": "1", "resource_request": "{}"}',
            "resource_request: not an object with cpus and memory",
        ),
        ("[]", "not an object"),
    ],
)
def test_a_bad_line_is_named_or_counted(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "instance_events.json"
    path.write_text(f"{json.dumps(EVENTS[0])}\n{line}\n{json.dumps(EVENTS[8])}\n")
    assert_bad(path, f"line 2: {problem}", remaining=2)


def test_files_that_are_none_are_one_line(tmp_path: Path) -> None:
    path, table = tmp_path / "instance_events.json.gz", tmp_path / "instance_events.csv"
    packed = gzip.compress(json.dumps(EVENTS[0]).encode() * 50)
    for target, content, problem in (
        (path, packed[:-10], "a broken gzip file"),
        (path, gzip.compress(b""), "there are no pods in it"),
        (table, b"time,type\n1,2\n", "line 1: the header has no column collection_id"),
        (table, b"", "there are no pods in it"),
    ):
        target.write_bytes(content)
        assert_unreadable(target, problem)
