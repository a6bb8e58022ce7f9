"""Our own schema: the same pods from JSON, CSV and Parquet, and what is wrong with bad files."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from moorage.api.decode import InputError
from moorage.api.quantity import parse_quantity
from moorage.simulation.traces.pods import TracePod
from moorage.simulation.traces.registry import read_trace
from moorage.simulation.traces.trace_files import trace_form, write_trace
from tests.simulation.traces.reading import assert_unreadable

JSON_LINES = """{"arrival": 0, "duration": 60, "cpu": "500m", "memory": "1Gi", "name": "a", "priority": 5}

{"arrival": 1.5, "nvidia.com/gpu": 1, "namespace": "ml", "name": "pod-3", "age": 7}
"""
TABLE = """arrival,duration,cpu,memory,name,priority,namespace,nvidia.com/gpu,age
0,60,500m,1Gi,a,5,,,
1.5,,,,pod-3,,ml,1,7
"""


def write_parquet(path: Path, **columns: Sequence[Any]) -> Path:
    parquet.write_table(
        pyarrow.table({name.replace("__", "/"): list(columns[name]) for name in columns}), path
    )
    return path


def test_the_forms_of_a_trace_say_the_same(tmp_path: Path) -> None:
    contents = {
        "trace.jsonl": JSON_LINES.encode(),
        "trace.csv": TABLE.encode(),
        "trace.jsonl.gz": gzip.compress(JSON_LINES.encode()),
        "trace.csv.gz": gzip.compress(TABLE.encode()),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    rows: dict[str, Sequence[Any]] = {
        "arrival": [0, 1.5],
        "duration": [60.0, None],
        "cpu": ["500m", None],
        "memory": ["1Gi", None],
        "name": ["a", "pod-3"],
        "priority": [5, None],
        "namespace": [None, "ml"],
        "nvidia.com__gpu": [None, 1],
        "age": [None, 7.0],
    }
    write_parquet(tmp_path / "trace.parquet", **rows)
    for name in (*contents, "trace.parquet"):
        first, second = read_trace(tmp_path / name)
        assert (first.at_seconds, first.duration_seconds, first.pod.key) == (0, 60, "default/a")
        assert first.pod.spec.priority == 5
        requests = {"cpu": parse_quantity("500m"), "memory": parse_quantity("1Gi")}
        assert first.pod.spec.containers[0].resources.requests == requests
        assert (second.at_seconds, second.duration_seconds, second.pod.key) == (1.5, None, "ml/pod-3")
        assert second.pod.spec.containers[0].resources.requests == {"nvidia.com/gpu": parse_quantity("1")}


def test_equal_requests_share_a_spec_and_pods_without_a_name_are_called_by_their_line(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"arrival": 1, "cpu": "1"}\n\n{"arrival": 2, "cpu": "1"}\n{"arrival": 3, "cpu": "2"}\n')
    first, second, third = read_trace(path)
    assert first.pod.spec is second.pod.spec
    assert second.pod.spec is not third.pod.spec
    assert [each.pod.name for each in (first, second, third)] == ["pod-1", "pod-3", "pod-4"]


NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,10}[a-z0-9])?", fullmatch=True)
SECONDS = st.floats(0, 1e9)
RESOURCES = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu")
QUANTITIES = st.sampled_from(["1", "100m", "2Gi", "1.5", "3k", "0", "7e2"])
PODS = st.builds(
    TracePod,
    SECONDS,
    st.just(0),
    NAMES,
    st.none() | SECONDS,
    st.dictionaries(st.sampled_from(RESOURCES), QUANTITIES).map(lambda each: tuple(sorted(each.items()))),
    NAMES,
    st.integers(-(2**31), 2**31 - 1),
    age_seconds=SECONDS,
)


@settings(max_examples=40)
@given(st.lists(PODS, min_size=1, max_size=5))
def test_what_is_written_is_read_again_in_every_form(pods: list[TracePod]) -> None:
    resources = {name for pod in pods for name, _ in pod.requests}
    with TemporaryDirectory() as folder:
        for name in ("t.jsonl", "t.csv", "t.jsonl.gz", "t.csv.gz", "t.parquet"):
            path = Path(folder, name)
            write_trace(path, trace_form(path), pods, resources)
            arrivals = list(read_trace(path))
            assert [
                (
                    each.at_seconds,
                    each.duration_seconds,
                    each.pod.namespace,
                    each.pod.name,
                    each.pod.spec.priority,
                )
                for each in arrivals
            ] == [
                (each.at_seconds, each.duration_seconds, each.namespace, each.name, each.priority)
                for each in pods
            ], name
            for arrival, pod in zip(arrivals, pods, strict=True):
                wanted = {name: parse_quantity(amount) for name, amount in pod.requests}
                assert arrival.pod.spec.containers[0].resources.requests == wanted


def test_equal_traces_are_equal_bytes(tmp_path: Path) -> None:
    pods = [TracePod(1.0, 0, "a", 2.0, (("cpu", "1"),))]
    for name in ("a.jsonl.gz", "b.jsonl.gz", "a.parquet", "b.parquet"):
        write_trace(tmp_path / name, trace_form(tmp_path / name), pods, ["cpu"])
    for form in ("jsonl.gz", "parquet"):
        assert (tmp_path / f"a.{form}").read_bytes() == (tmp_path / f"b.{form}").read_bytes()


@pytest.mark.parametrize(
    ("name", "line", "problem"),
    [
        ("t.jsonl", "{", "not JSON: "),
        ("t.jsonl", "[1]", "not an object"),
        ("t.jsonl", "[" * 100_000, "not JSON: "),
        ("t.jsonl", '{"duration": 1}', "arrival is missing"),
        ("t.jsonl", '{"arrival": "soon"}', "arrival: 'soon' is not a number of seconds"),
        ("t.jsonl", '{"arrival": -1}', "arrival: -1 is not a number of seconds"),
        ("t.jsonl", '{"arrival": 1e300}', "arrival: 1e+300 is not a number of seconds"),
        ("t.jsonl", '{"arrival": 1, "cpu": "much"}', "cpu: "),
        ("t.jsonl", '{"arrival": 1, "cpu": -1}', "cpu: -1 is negative"),
        ("t.jsonl", '{"arrival": 1, "priority": 1.5}', "priority: 1.5 is not an integer"),
        ("t.jsonl", '{"arrival": 1, "gpu": 1}', "unknown field gpu"),
        ("t.csv", "1,2", "2 columns; the header has 1"),
    ],
)
def test_a_bad_line_is_named_or_counted(tmp_path: Path, name: str, line: str, problem: str) -> None:
    path = tmp_path / name
    good = '{"arrival": 1}' if name == "t.jsonl" else "arrival\n1"
    path.write_text(f"{good}\n{line}\n{good.splitlines()[-1]}\n")
    bad = 2 if name == "t.jsonl" else 3
    with pytest.raises(InputError) as error:
        list(read_trace(path))
    assert str(error.value).startswith(f"{path}: line {bad}: {problem}")
    skipped: list[str] = []
    assert len(list(read_trace(path, skipped.append))) == 2
    assert [each.startswith(f"{path}: line {bad}: ") for each in skipped] == [True]


def test_a_bad_row_of_parquet_is_named_or_counted(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "t.parquet", arrival=[1.0, -2.0, 3.0], cpu=["1", "1", "1"])
    with pytest.raises(InputError) as error:
        list(read_trace(path))
    assert str(error.value) == f"{path}: row 2: arrival: -2.0 is not a number of seconds"
    assert len(list(read_trace(path, lambda line: None))) == 2


def test_files_that_are_no_traces_are_one_line(tmp_path: Path) -> None:
    expected = "the name of a trace ends in .jsonl, .csv (or either with .gz) or .parquet"
    packed = gzip.compress(JSON_LINES.encode() * 100)
    good = write_parquet(tmp_path / "good.parquet", arrival=[1.0]).read_bytes()
    for name, content, problem in (
        ("cut.jsonl.gz", packed[:-9], "a broken gzip file"),
        ("changed.jsonl.gz", packed[:20] + b"\xff\xff\xff\xff" + packed[24:], "a broken gzip file"),
        ("plain.jsonl.gz", JSON_LINES.encode(), "a broken gzip file"),
        ("binary.csv", b"\xff\xfe\n", "not UTF-8 text"),
        ("empty.csv", b"", "there are no pods in it"),
        ("empty.jsonl", b"", "there are no pods in it"),
        ("header.csv", b"arrival,cpu\n", "there are no pods in it"),
        ("other.csv", b"when,cpu\n1,1\n", "line 1: the header has no column arrival"),
        ("long.jsonl", b" " * (16 << 20), "line 1: longer than 16,777,216 characters"),
        ("trace.txt", b"", expected),
        ("text.parquet", b"arrival\n1\n", "not a readable Parquet file: "),
        ("empty.parquet", b"", "not a readable Parquet file: "),
        ("cut.parquet", good[:-20], "not a readable Parquet file: "),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        assert_unreadable(path, problem)
    assert_unreadable(tmp_path / "none.csv", "No such file or directory")
    assert_unreadable(tmp_path / "none.parquet", "No such file or directory")


def test_parquet_with_other_columns_is_one_line(tmp_path: Path) -> None:
    without = write_parquet(tmp_path / "a.parquet", cpu=["1"])
    assert_unreadable(without, "there is no column arrival")
    other = write_parquet(tmp_path / "b.parquet", arrival=[1.0], speed=["1"])
    assert_unreadable(other, "unknown column speed; expected arrival, duration, cpu, memory, ...")
