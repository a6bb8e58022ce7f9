"""A node with many pods: what one of them costs, and that nothing is lost where many come and go at once."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from tests.builders import make_node, make_pod


def running(number: int) -> Pod:
    return make_pod(f"p{number}", on="a", uid=f"p{number}", requests={"cpu": "1m"})


def instructions_to_replace_a_pod(others: int) -> int:
    """Number of interpreted instructions for one deleted pod, one new pod and the snapshot after both."""
    cache = Cache([make_node("a"), *(running(number) for number in range(others))])
    for number in range(2):  # The first time, what is computed once per class and column.
        cache.snapshot()
        replaced, new = running(number), running(others + number)
        count = 0

        def trace(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal count
            frame.f_trace_opcodes = True
            count += event == "opcode"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            cache.remove_pod(replaced)
            cache.put_pod(new)
            cache.snapshot()
        finally:
            sys.settrace(before)
    cache.validate()
    return count


def test_a_deleted_pod_costs_the_same_however_many_others_are_on_its_node() -> None:
    assert instructions_to_replace_a_pod(200) <= instructions_to_replace_a_pod(20) + 20


@pytest.mark.parametrize("is_read_between", [True, False])
def test_more_pods_than_moves_are_kept_for_come_and_go_between_two_snapshots(is_read_between: bool) -> None:
    cache = Cache([make_node("a"), running(0), running(1)])
    snapshot = cache.snapshot()
    for number in range(2, 700):
        cache.put_pod(running(number))
        if number % 3:
            cache.remove_pod(running(number - 1))
        if is_read_between and number % 100 == 0:
            cache.snapshot()
    cache.validate()
    assert len(snapshot.pods_of(0)) == cache.pod_count
