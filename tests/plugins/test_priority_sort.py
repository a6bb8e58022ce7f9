"""PrioritySort: which of two pods is scheduled first."""

from __future__ import annotations

import pytest

from moorage.plugins.priority_sort import PrioritySort
from moorage.queue.queued_pod import QueuedPod
from tests.builders import make_pod

RULES = {
    "higher priority first": ((10, 2.0), (5, 1.0)),
    "of equal priority, the one that waits longer first": ((5, 1.0), (5, 2.0)),
    "a negative priority is below the default": ((0, 2.0), (-1, 1.0)),
}


@pytest.mark.parametrize(("first", "second"), RULES.values(), ids=RULES.keys())
def test_order(first: tuple[int, float], second: tuple[int, float]) -> None:
    keys = [
        PrioritySort().queue_sort(QueuedPod(make_pod("p", priority=priority), timestamp))
        for priority, timestamp in (first, second)
    ]
    assert keys[0] < keys[1]
