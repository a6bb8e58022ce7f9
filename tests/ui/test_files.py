"""Recordings, results of simulations and reports of shadow mode as sources of the page."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from moorage.api.decode import InputError
from moorage.cli.main import app
from moorage.http.transport import Request, Response
from moorage.plugins import default_registry
from moorage.sim.recording import Recording, load_recording
from moorage.sim.replay import Replay
from moorage.simulation.records import NodeRecord, PodRecord
from moorage.ui.documents import History
from moorage.ui.second_run import second_run_feature
from moorage.ui.sources.file_source import FileSource
from moorage.ui.sources.files import open_file
from moorage.ui.sources.simulation import fill
from moorage.ui.timeline import Timeline
from tests.scheduler.recorded_runs import record, recorded
from tests.ui.example_files import START, shadow_file, simulation_file, simulation_result

RECORDINGS = Path(__file__).parents[1] / "recordings"
COMPARED = ("churn-0", "preemption-0", "preemption-hard-0", "groups/gang-preemption-3", "groups/gang-wake-3")


def asked(source: FileSource, path: str) -> Any:
    routes = source.routes()
    handler = routes.get(path) or next(routes[each] for each in routes if path.startswith(each))
    answer: Response = asyncio.run(handler(Request("GET", f"/api/v1/{path}", "", {}, b"")))  # type: ignore[arg-type]
    assert isinstance(answer.body, bytes)
    return json.loads(answer.body)


def on_nodes(source: FileSource) -> dict[str, str]:
    return {key: pod.node for key, pod in source.timeline.pods.items() if pod.node}


def replayed(recording: Recording) -> Replay:
    replay = Replay(recording, default_registry())
    assert [each for differences in replay.run() for each in differences] == []
    return replay


@pytest.mark.parametrize("name", COMPARED)
def test_a_recording_ends_as_its_replay(name: str) -> None:
    path = RECORDINGS / f"{name}.json.gz"
    source, cache = open_file(path), replayed(load_recording(path)).cluster.cache
    assert on_nodes(source) == {pod.key: pod.spec.node_name for pod in cache.pods()}
    assert source.timeline.nodes.keys() == set(cache.snapshot().names)


def test_a_run_that_was_recorded_ends_as_its_replay(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    record(recorded("preemption"), path)
    source, cache = open_file(path), replayed(load_recording(path)).cluster.cache
    assert on_nodes(source) == {pod.key: pod.spec.node_name for pod in cache.pods()}
    assert (source.info().kind, source.info().live) == ("recording", False)


def test_attempts_have_the_recorded_numbers() -> None:
    path = RECORDINGS / "preemption-0.json.gz"
    step = next(load_recording(path).pods())
    failed, bound = asked(open_file(path), f"attempts/{step.pod.key}")["items"]
    assert (failed["result"], failed["message"]) == ("Unschedulable", step.expect.message)
    assert failed["victims"] == list(step.expect.victims or ())
    assert (bound["result"], bound["node"], bound["attempt"]) == ("Scheduled", step.expect.node, 2)

    path = RECORDINGS / "churn-0.json.gz"
    step = next(load_recording(path).pods())
    [attempt] = asked(open_file(path), f"attempts/{step.pod.key}")["items"]
    assert step.expect.scores is not None
    assert {each["name"]: each["scores"] for each in attempt["nodes"]} == step.expect.scores
    totals = [each["total"] for each in attempt["nodes"]]
    assert totals == sorted((sum(each.values()) for each in step.expect.scores.values()), reverse=True)
    assert attempt["nodes"][0]["name"] == step.expect.node


def test_steps_are_the_times_of_a_recording() -> None:
    path = RECORDINGS / "mixed-0.json.gz"
    timeline, recording = open_file(path).timeline, load_recording(path)
    for number, step in enumerate(recording.pods(), 1):
        [batch] = [each for each in timeline.history().changes if each.time == number]
        after = batch.pods[step.pod.key]
        assert after is not None
        assert (after.node or None, after.message or None) == (step.expect.node, step.expect.message)


def state_at(history: History, time: float) -> tuple[set[str], dict[str, str]]:
    nodes, pods = dict(history.base.nodes), dict(history.base.pods)
    for batch in history.changes:
        if batch.time <= time:
            nodes |= batch.nodes  # type: ignore[arg-type]
            pods |= batch.pods  # type: ignore[arg-type]
    return {key for key, node in nodes.items() if node}, {key: pod.node for key, pod in pods.items() if pod}


def is_there(since: float, until: float | None, time: float) -> bool:
    return since <= time and (until is None or until > time)


@st.composite
def records(draw: st.DrawFn) -> tuple[list[NodeRecord], list[PodRecord]]:
    """Nodes and pods with whole times, which may come again after they are gone."""
    nodes, pods = [], []
    for number in range(draw(st.integers(0, 4))):
        times = sorted(draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)))
        for added, removed in zip(times[::2], [*times[1::2], None], strict=False):
            nodes.append(NodeRecord(f"node-{number}", 4000, added, removed))
    for number in range(draw(st.integers(0, 6))):
        times = sorted(draw(st.lists(st.integers(0, 9), min_size=1, max_size=3)))
        arrived, bound, ended = [*times, None, None][:3]
        assert arrived is not None
        node = "" if bound is None else "node-0"
        pods.append(PodRecord("default", f"pod-{number}", arrived, bound, ended, node))
    return nodes, pods


@given(records())
def test_a_simulation_has_at_any_time_what_its_records_say(
    given_records: tuple[list[NodeRecord], list[PodRecord]],
) -> None:
    nodes, pods = given_records
    result = msgspec.structs.replace(simulation_result(1, 1), nodes=nodes, placements=pods)
    timeline = Timeline(lambda: 0.0)
    fill(timeline, result)
    for time in range(11):
        there = {each.name for each in nodes if is_there(each.added_at, each.removed_at, time)}
        alive = [each for each in pods if is_there(each.arrived_at, each.ended_at, time)]
        placed = {p.name: p.node if p.bound_at is not None and p.bound_at <= time else "" for p in alive}
        expected = there, {f"default/{name}": node for name, node in placed.items()}
        assert state_at(timeline.history(), time) == expected


def test_a_simulation_has_the_capacity_of_its_nodes(tmp_path: Path) -> None:
    source = open_file(simulation_file(tmp_path / "result.json", simulation_result()))
    assert source.info().kind == "simulation"
    assert [each.allocatable for each in source.timeline.nodes.values()] == [
        {"cpu": 4000, "memory": 32 * 1024**3}
    ] * 2
    assert list(on_nodes(source)) == ["default/pod-5"]


def test_a_pod_that_stays_pending_has_its_message_at_the_end(tmp_path: Path) -> None:
    result = simulation_result(1, 2, cpu="5")
    timeline = open_file(simulation_file(tmp_path / "result.json", result)).timeline
    first, *_, last = (
        batch.pods["default/pod-0"] for batch in timeline.history().changes if "default/pod-0" in batch.pods
    )
    assert first is not None
    assert last is not None
    assert (first.message, last.message) == ("", result.placements[0].message)
    assert "Insufficient cpu" in last.message


def test_an_interrupted_simulation_says_so(tmp_path: Path) -> None:
    result = msgspec.structs.replace(simulation_result(), complete=False)
    assert "interrupted" in open_file(simulation_file(tmp_path / "result.json", result)).info().problems[0]


def test_a_report_of_shadow_mode_has_both_decisions(tmp_path: Path) -> None:
    source = open_file(shadow_file(tmp_path / "shadow.jsonl"))
    rows = asked(source, "comparisons")["items"]
    assert [(row["pod"], row["node"], row["ours"], row.get("plugin")) for row in rows] == [
        ("default/web-0", "node-0", "node-0", None),
        ("default/web-1", "node-0", "node-1", "NodeResourcesFit"),
        ("default/train-0", "node-2", "node-2", None),
        ("default/train-1", "node-2", "node-1", "NodeAffinity"),
    ]
    assert rows[0]["time"] == START.timestamp()
    assert on_nodes(source) == {row["pod"]: row["node"] for row in rows}
    assert [len(each.pods) for each in source.timeline.history().changes] == [1, 1, 2]
    ours = asked(source, "runs/2/cluster")["pods"]
    assert {key: pod["node"] for key, pod in ours.items()} == {row["pod"]: row["ours"] for row in rows}


def test_a_second_file_is_a_second_run(tmp_path: Path) -> None:
    first, second = (
        open_file(simulation_file(tmp_path / name, simulation_result(count)))
        for name, count in (("one", 1), ("two", 2))
    )
    first.add(second_run_feature(second))
    assert "compare" in first.info().features
    assert asked(first, "runs/2/source")["title"] == str(tmp_path / "two")
    assert len(asked(first, "runs/2/cluster")["nodes"]) == 2


def test_of_too_many_changes_the_last_are_kept() -> None:
    source = FileSource("simulation", "result.json", max_changes=3)
    for time in range(5):
        source.timeline.put_node(f"node-{time}", None)
        source.timeline.close_batch(float(time))
    assert source.info().problems == ("The first 2 changes are not shown: the file has too many.",)


WHOLE = gzip.decompress((RECORDINGS / "churn-0.json.gz").read_bytes())
BROKEN = {
    "empty": (b"", "neither a recording"),
    "foreign": (b'{"apiVersion": "v1", "kind": "List", "items": []}', "neither a recording"),
    "list": (b"[1, 2]", "neither a recording"),
    "text": (b"hello\n", "not JSON"),
    "bytes": (b"\xff\xfe\x00", "not UTF-8 text"),
    "truncated": (WHOLE[: len(WHOLE) // 2], "not JSON"),
    "truncated gzip": (gzip.compress(WHOLE)[:-500], "a broken gzip file"),
    "steps": (b'{"steps": {}}', "steps: expected a list"),
    "simulation": (b'{"kind": "Simulation"}', "not a result of a simulation"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_is_one_line(name: str, tmp_path: Path) -> None:
    contents, reason = BROKEN[name]
    path = tmp_path / "file"
    path.write_bytes(contents)
    with pytest.raises(InputError) as caught:
        open_file(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert reason in str(caught.value)


def test_a_truncated_report_names_the_line(tmp_path: Path) -> None:
    path = shadow_file(tmp_path / "shadow.jsonl")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"line 3: not JSON"):
        open_file(path)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("missing",), "No such file or directory"),
        (("result", "recording"), "a simulation cannot be compared with a recording"),
        (("result", "result", "result"), "at most two files"),
        (("result", "--context=other"), "without --kubeconfig, --context and --scheduler"),
    ],
)
def test_the_command_ends_with_one_line(
    words: tuple[str, ...], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    simulation_file(tmp_path / "result", simulation_result(1, 1))
    (tmp_path / "recording").write_bytes(WHOLE)
    ended = CliRunner().invoke(app, ["ui", *words])
    assert ended.exit_code == 2
    assert reason in ended.stderr
    assert ended.stderr.count("\n") == 1
