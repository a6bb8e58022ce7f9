"""The ground truth for groups of pods: cycles of the real kube-scheduler v1.37, made again and compared."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.base import Condition
from moorage.plugins import default_registry
from moorage.sim.group_recording import GroupStep, RecordedCycle, RecordedResult
from moorage.sim.recording import Recording, load_recording
from moorage.sim.replay import Replay, ReplayResult

FOLDER = Path(__file__).parent / "recordings" / "groups"
RECORDINGS = sorted(FOLDER.glob("*.json.gz"))


def named(path: Path) -> str:
    return path.name.removesuffix(".json.gz")


@pytest.mark.parametrize("file", RECORDINGS, ids=named)
def test_every_cycle_is_equal(file: Path) -> None:
    result = ReplayResult()
    result.add(load_recording(file), default_registry())
    assert result.pods > 0
    assert [str(difference) for difference in result.differences] == []


def test_all_families_are_here() -> None:
    assert len(RECORDINGS) == 18
    assert len({named(file).rsplit("-", 1)[0] for file in RECORDINGS}) == 15


def differences(recording: Recording, step: GroupStep, changed: GroupStep) -> set[str]:
    """What differs if one step expects something else."""
    steps = tuple(changed if each is step else each for each in recording.steps)
    replay = Replay(dataclasses.replace(recording, steps=steps), default_registry())
    return {difference.what.rpartition(": ")[2] for found in replay.run() for difference in found}


def first_cycle(recording: Recording) -> tuple[GroupStep, RecordedCycle]:
    step = next(each for each in recording.steps if isinstance(each, GroupStep) and each.expect.cycles)
    return step, step.expect.cycles[0]


def expecting(step: GroupStep, cycle: RecordedCycle) -> GroupStep:
    return dataclasses.replace(step, expect=replace(step.expect, cycles=(cycle, *step.expect.cycles[1:])))


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("message", {"messages": {"default/nobody": "why"}}),
        ("result", {"results": {"default/run": RecordedResult(outcome="Error", message="x")}}),
        ("placements", {"simulations": ()}),
    ],
)
def test_a_cycle_that_ended_otherwise_is_a_difference(what: str, change: dict[str, object]) -> None:
    recording = load_recording(FOLDER / "gang-topology-0.json.gz")
    step, cycle = first_cycle(recording)
    assert what in differences(recording, step, expecting(step, replace(cycle, **change)))


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("member", {"pod": "default/nobody"}),
        ("feasible", {"feasible": 99, "scores": None}),
        ("score", {"scores": "+1"}),
        ("message", {"message": "why"}),
    ],
)
def test_a_member_that_was_judged_otherwise_is_a_difference(what: str, change: dict[str, Any]) -> None:
    recording = load_recording(FOLDER / "gang-2.json.gz")
    step, cycle = first_cycle(recording)
    placement = cycle.simulations[0]
    member = placement.members[0]
    if change.get("scores"):
        assert member.scores is not None
        scored = {node: {**by, "NodeResourcesFit": 101} for node, by in member.scores.items()}
        change = {"scores": scored}
    members = (replace(member, **change), *placement.members[1:])
    simulations = (replace(placement, members=members), *cycle.simulations[1:])
    assert what in differences(recording, step, expecting(step, replace(cycle, simulations=simulations)))


def test_other_victims_are_a_difference() -> None:
    recording = load_recording(FOLDER / "gang-preemption-0.json.gz")
    step = next(s for s in recording.steps if isinstance(s, GroupStep) and s.expect.victims)
    changed = dataclasses.replace(step, expect=replace(step.expect, victims=("default/nobody",)))
    assert "victims" in differences(recording, step, changed)


def test_a_condition_that_a_race_cannot_explain_is_a_difference() -> None:
    recording = load_recording(FOLDER / "gang-2.json.gz")
    step, _ = first_cycle(recording)
    wrong = Condition(type="PodGroupInitiallyScheduled", status="False", reason="SchedulerError", message="x")
    groups = dict.fromkeys(step.expect.groups, (wrong,))
    changed = dataclasses.replace(step, expect=replace(step.expect, groups=groups))
    assert "condition" in differences(recording, step, changed)
