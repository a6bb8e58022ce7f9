"""The cost of a pod whose template is cached, in calls of Python functions: they can be counted exactly."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

import moorage
from moorage.scheduler import attempt_history
from tests.bench.files import Files

_SCHEDULER = str(Path(moorage.__file__).parent)
_NOT_COUNTED = tuple(str(Path(moorage.__file__).parent / each) for each in ("bench", "sim"))
"""The generator, and the store in place of an API server."""
MAX_CALLS = 355
"""Maximum number of calls for one pod, from its decoding until its event is written."""


def calls(files: Files, pods: int) -> int:
    """Calls of the scheduler's functions while a number of pods is created and scheduled."""
    count = 0

    def on_event(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event == "call":
            path = frame.f_code.co_filename
            count += path.startswith(_SCHEDULER) and not path.startswith(_NOT_COUNTED)

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        result = files.run(
            {"opcode": "createNodes", "count": 20},
            {"opcode": "createPods", "count": pods, "collectMetrics": True},
        )
    finally:
        sys.setprofile(before)
    assert result.pods == pods
    return count


def test_a_pod_whose_template_is_known_takes_a_bounded_number_of_calls(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How often the scores of attempts are read depends on time.
    monkeypatch.setattr(attempt_history, "_SCORING_SHARE", 0.0)
    monkeypatch.setattr(attempt_history, "_MAX_SCORING_SECONDS", 0.0)
    calls(files, 40)  # The first run in a process makes more calls: it fills caches.
    few, many = calls(files, 40), calls(files, 140)
    assert (many - few) / 100 <= MAX_CALLS
