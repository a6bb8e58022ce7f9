"""Recordings of our own scheduler at work: a replay of them is equal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.plugins import default_registry
from moorage.scheduler.observers import Observer, Observers
from moorage.scheduler.recorder import Recorder
from moorage.scheduler.recording_file import RecordingFile
from moorage.sim.recording import Recording, load_recording
from moorage.sim.replay import ReplayResult
from tests.scheduler.recorded_runs import FAMILIES, recorded, staged

MOST_PODS = 24
"""Pods of a recording that are scheduled: enough for each family's subject."""


def record(recording: Recording, path: Path) -> None:
    async def run() -> None:
        reference = f"moorage, as kube-scheduler v{recording.version.number}"
        recorder = Recorder(RecordingFile(path, recording.config, recording.version, reference))
        async with staged(recording) as stage:
            stage.scheduler(Observers(Observer(), recorder))
            await stage.plays(MOST_PODS)
            recorder.close()

    asyncio.run(run())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_replay_of_what_was_recorded_is_equal(family: str, tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    record(recorded(family), path)
    result = ReplayResult()
    result.add(load_recording(path), default_registry())
    assert [str(each) for each in result.differences] == []
    assert result.pods > 0


def document(family: str, tmp_path: Path) -> Any:
    path = tmp_path / "recording.json"
    record(recorded(family), path)
    return json.loads(path.read_text())


def test_preemption_is_recorded_as_it_went(tmp_path: Path) -> None:
    steps = document("preemption", tmp_path)["steps"]
    at = next(index for index, step in enumerate(steps) if step.get("expect", {}).get("victims"))
    expect = steps[at]["expect"]
    evicted = [obj["metadata"]["name"] for step in steps[at + 1 :] for obj in step.get("delete", ())]
    assert {key.partition("/")[2] for key in expect["victims"]} <= set(evicted)
    later = [step for step in steps[at + 1 :] if "pod" in step]
    again = next(s for s in later if s["pod"]["metadata"]["name"] == steps[at]["pod"]["metadata"]["name"])
    assert again["expect"]["node"] == expect["nominated"]


def another_score(expect: Any) -> None:
    expect["scores"][expect["node"]]["NodeResourcesFit"] += 1


def another_feasible_node(expect: Any) -> None:
    del expect["scores"][expect["node"]]


def another_victim(expect: Any) -> None:
    expect["victims"].append("default/another")


def another_message(expect: Any) -> None:
    expect["message"] += " Not."


def another_nomination(expect: Any) -> None:
    expect.update(nominated="elsewhere", victims=[])


@pytest.mark.parametrize(
    ("family", "change", "what"),
    [
        ("taints", another_score, "score"),
        ("taints", another_feasible_node, "feasible"),
        ("preemption", another_victim, "victims"),
        ("preemption", another_message, "message"),
        ("preemption", another_nomination, "nominated"),
    ],
)
def test_every_part_of_an_attempt_is_compared(
    family: str, change: Callable[[Any], None], what: str, tmp_path: Path
) -> None:
    recording = document(family, tmp_path)
    expected = (step["expect"] for step in recording["steps"] if "pod" in step)
    change(next(each for each in expected if each.get("victims") or len(each["scores"]) > 1))
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(recording))
    result = ReplayResult()
    result.add(load_recording(path), default_registry())
    assert what in {each.what for each in result.differences}


def test_the_file_is_complete_after_every_step(tmp_path: Path) -> None:
    recording, path = recorded("taints"), tmp_path / "recording.json"
    file = RecordingFile(path, recording.config, recording.version, "test")
    file.begin(recording.objects)
    assert json.loads(path.read_text())["steps"] == []
    for number in range(3):
        file.add({"step": number})
        assert [step["step"] for step in json.loads(path.read_text())["steps"]] == [*range(number + 1)]
    file.close()
