"""The cost of pods whose templates are cached, in calls of Python functions: they can be counted exactly."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import moorage
from moorage.scheduler import attempt_history
from tests.bench.files import Files, pod

_SCHEDULER = str(Path(moorage.__file__).parent)
_NOT_COUNTED = tuple(str(Path(moorage.__file__).parent / each) for each in ("bench", "sim"))
"""The generator, and the store in place of an API server."""
MAX_CALLS = 347
"""Maximum number of calls for one pod, from its decoding until its event is written."""


MAX_CALLS_OF_PREEMPTOR = 1_340
"""The same for one pod that evicts three others before it gets its node."""


def count_calls(files: Files, *ops: dict[str, Any]) -> int:
    """Calls of the scheduler's functions during a run."""
    count = 0

    def on_event(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event == "call":
            path = frame.f_code.co_filename
            count += path.startswith(_SCHEDULER) and not path.startswith(_NOT_COUNTED)

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        files.run(*ops)
    finally:
        sys.setprofile(before)
    return count


def calls(files: Files, pods: int) -> int:
    """Calls while a number of pods is created and scheduled."""
    measured = {"opcode": "createPods", "count": pods, "collectMetrics": True}
    return count_calls(files, {"opcode": "createNodes", "count": 20}, measured)


def calls_of_preemption(files: Files, pods: int) -> int:
    """Calls while each of a number of pods evicts three of four pods from one of 20 nodes."""
    template = "podTemplatePath"
    preemptors = {"opcode": "createPods", "count": pods, template: "high.yaml", "collectMetrics": True}
    return count_calls(
        files,
        {"opcode": "createNodes", "count": 20},
        {"opcode": "createPods", "count": 80, template: "low.yaml"},
        preemptors,
    )


@pytest.fixture(autouse=True)
def scores_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """How often the scores of attempts are read depends on time."""
    monkeypatch.setattr(attempt_history, "_SCORING_SHARE", 0.0)
    monkeypatch.setattr(attempt_history, "_MAX_SCORING_SECONDS", 0.0)


def test_a_pod_whose_template_is_known_takes_a_bounded_number_of_calls(files: Files) -> None:
    calls(files, 40)  # The first run in a process makes more calls: it fills caches.
    few, many = calls(files, 40), calls(files, 140)
    assert (many - few) / 100 <= MAX_CALLS


def test_a_pod_that_evicts_others_takes_a_bounded_number_of_calls(files: Files) -> None:
    files.template("low.yaml", pod(cpu="900m", terminationGracePeriodSeconds=0))
    files.template("high.yaml", pod(cpu="3", priority=10))
    calls_of_preemption(files, 5)
    few, many = calls_of_preemption(files, 5), calls_of_preemption(files, 15)
    assert (many - few) / 10 <= MAX_CALLS_OF_PREEMPTOR
