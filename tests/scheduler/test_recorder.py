"""Recordings of our own scheduler at work: a replay of them is equal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.plugins import default_registry
from moorage.scheduler.recording_file import RecordingFile
from moorage.sim.recording import load_recording
from moorage.sim.replay import ReplayResult
from tests.scheduler.recorded_runs import FAMILIES, GROUP_FAMILIES, record, recorded, recorded_groups


@pytest.mark.parametrize("family", FAMILIES)
def test_a_replay_of_what_was_recorded_is_equal(family: str, tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    record(recorded(family), path)
    result = ReplayResult()
    result.add(load_recording(path), default_registry())
    assert [str(each) for each in result.differences] == []
    assert result.pods > 0


@pytest.mark.parametrize("name", GROUP_FAMILIES)
def test_a_replay_of_recorded_groups_is_equal(name: str, tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    record(recorded_groups(name), path)
    result = ReplayResult()
    result.add(load_recording(path), default_registry())
    assert [str(each) for each in result.differences] == []
    steps = json.loads(path.read_text())["steps"]
    assert any("group" in step for step in steps)


def grouped_document(name: str, tmp_path: Path) -> Any:
    path = tmp_path / "recording.json"
    record(recorded_groups(name), path)
    return json.loads(path.read_text())


def cycles(recording: Any) -> Iterator[tuple[Any, Any]]:
    """What is expected of each attempt of a group, and the cycle in it."""
    expected = (step["expect"] for step in recording["steps"] if "group" in step)
    return ((expect, cycle) for expect in expected for cycle in expect.get("cycles", ()))


def replayed(recording: Any, tmp_path: Path) -> ReplayResult:
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(recording))
    result = ReplayResult()
    result.add(load_recording(path), default_registry())
    return result


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
    assert what in {each.what for each in replayed(recording, tmp_path).differences}


def another_member_score(cycle: Any) -> None:
    scored = [each for each in cycle["simulations"][0]["members"] if each.get("scores")]
    next(iter(scored[0]["scores"].values()))["NodeResourcesFit"] += 1


def another_order(cycle: Any) -> None:
    cycle["simulations"][0]["members"].reverse()


def another_member_message(cycle: Any) -> None:
    refused = [each for each in cycle["simulations"][0]["members"] if each.get("message")]
    refused[0]["message"] += " Not."


def fewer_placements(cycle: Any) -> None:
    cycle["simulations"].pop()


def another_placement_score(cycle: Any) -> None:
    next(iter(next(iter(cycle["placementScores"].values())).values()))["PodGroupPodsCount"] += 1


def another_outcome(cycle: Any) -> None:
    next(iter(cycle["results"].values())).update(outcome="Error", message="why")


def another_nominated_node(cycle: Any) -> None:
    cycle["nominated"] = dict.fromkeys(cycle["nominated"], "elsewhere")


def another_node_of_the_dry_run(cycle: Any) -> None:
    tried = cycle["preemption"]["simulations"][0]
    tried["members"][0]["feasible"] += 1
    tried["members"][0].pop("scores", None)


@pytest.mark.parametrize(
    ("name", "change", "what", "needs"),
    [
        ("gang-2", another_member_score, "score", lambda cycle: "scores" in str(cycle["simulations"])),
        ("gang-2", another_order, "member", lambda cycle: len(cycle["simulations"][0]["members"]) > 1),
        ("gang-2", another_member_message, "message", lambda cycle: "'message': '0/" in str(cycle)),
        ("gang-topology-0", fewer_placements, "placements", lambda cycle: len(cycle["simulations"]) > 1),
        (
            "gang-topology-0",
            another_placement_score,
            "placement scores",
            lambda cycle: "PodGroupPodsCount" in str(cycle["placementScores"]),
        ),
        ("gang-2", another_outcome, "result", lambda cycle: cycle["results"]),
        ("gang-preemption-0", another_nominated_node, "nominated", lambda cycle: cycle["nominated"]),
        (
            "gang-preemption-0",
            another_node_of_the_dry_run,
            "feasible",
            lambda cycle: cycle.get("preemption", {}).get("simulations"),
        ),
    ],
)
def test_every_part_of_a_groups_attempt_is_compared(
    name: str,
    change: Callable[[Any], None],
    what: str,
    needs: Callable[[Any], object],
    tmp_path: Path,
) -> None:
    recording = grouped_document(name, tmp_path)
    change(next(cycle for _, cycle in cycles(recording) if needs(cycle)))
    assert what in {each.what.rpartition(": ")[2] for each in replayed(recording, tmp_path).differences}


def test_the_victims_of_a_group_are_compared(tmp_path: Path) -> None:
    recording = grouped_document("gang-preemption-0", tmp_path)
    expect = next(expect for expect, _ in cycles(recording) if expect["victims"])
    expect["victims"] = ["default/nobody"]
    assert {each.what for each in replayed(recording, tmp_path).differences} == {"victims"}


def test_the_refusal_of_a_group_is_compared(tmp_path: Path) -> None:
    recording = grouped_document("group-errors-1", tmp_path)
    expected = (step["expect"] for step in recording["steps"] if "group" in step)
    refused = next(each for each in expected if not each.get("cycles"))
    refused["pods"] = {key: {"message": "why"} for key in refused["pods"]}
    assert {each.what for each in replayed(recording, tmp_path).differences} == {"message"}


def test_the_file_is_complete_after_every_step(tmp_path: Path) -> None:
    recording, path = recorded("taints"), tmp_path / "recording.json"
    file = RecordingFile(path, recording.config, recording.version, "test")
    file.begin(recording.objects)
    assert json.loads(path.read_text())["steps"] == []
    for number in range(3):
        file.add({"step": number})
        assert [step["step"] for step in json.loads(path.read_text())["steps"]] == [*range(number + 1)]
    file.close()
