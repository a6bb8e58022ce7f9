from __future__ import annotations

from datetime import UTC, datetime

from moorage.api.conditions import condition_status, find_condition, is_ready, set_condition

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
NOW_TEXT = "2026-03-04T05:06:07Z"
BEFORE = "2026-01-01T00:00:00Z"
READY = {"type": "Ready", "status": "True", "lastTransitionTime": BEFORE}
OTHER = {"type": "Other", "status": "Unknown"}


def test_what_an_object_says() -> None:
    pod = {"status": {"conditions": [OTHER, READY]}}
    assert find_condition(pod["status"], "Ready") == READY
    assert condition_status(pod, "Other") == "Unknown"
    assert is_ready(pod)


def test_an_object_that_says_nothing() -> None:
    assert find_condition({}, "Ready") is None
    assert condition_status({"status": {"conditions": None}}, "Ready") == ""
    assert not is_ready({})


def test_a_condition_keeps_its_place_and_its_time_while_its_status_stays() -> None:
    again = {"type": "Ready", "status": "True", "reason": "Still"}
    assert set_condition([READY, OTHER], again, NOW) == [{**again, "lastTransitionTime": BEFORE}, OTHER]


def test_a_condition_that_turns_has_a_new_time() -> None:
    gone = {"type": "Ready", "status": "False"}
    assert set_condition([READY], gone, NOW) == [{**gone, "lastTransitionTime": NOW_TEXT}]


def test_a_new_condition_comes_last() -> None:
    assert set_condition([OTHER], {"type": "Ready", "status": "True"}, NOW) == [
        OTHER,
        {"type": "Ready", "status": "True", "lastTransitionTime": NOW_TEXT},
    ]
