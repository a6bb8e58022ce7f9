"""The order of pods, whatever the order in which they come, and what keeping it costs."""

from __future__ import annotations

from functools import total_ordering

from hypothesis import given
from hypothesis import strategies as st

from moorage.queue.heap import PodHeap
from moorage.queue.queued_pod import QueuedPod
from tests.builders import make_pod


def queued_pod(uid: int) -> QueuedPod:
    return QueuedPod(make_pod(str(uid), uid=str(uid)), 0.0)


@given(st.lists(st.tuples(st.sampled_from(["put", "put", "remove", "pop", "sort"]), st.integers(0, 9))))
def test_pods_are_popped_by_key_and_then_in_the_order_in_which_they_came(
    steps: list[tuple[str, int]],
) -> None:
    keys: dict[str, int] = {}
    factor = 1

    def key_of(queued: QueuedPod) -> int:
        return factor * keys[queued.uid]

    heap = PodHeap(key_of)
    expected: list[QueuedPod] = []
    for number, (step, key) in enumerate(steps):
        match step:
            case "put":
                queued = queued_pod(number)
                keys[queued.uid] = key
                heap.put(queued)
                expected.append(queued)
            case "remove" if expected:
                queued = expected.pop(key % len(expected))
                assert heap.remove(queued.uid) is queued
            case "pop":
                first = min(expected, key=key_of, default=None)
                assert heap.first() is heap.first() is first
                assert heap.pop() is first
                if first is not None:
                    expected.remove(first)
            case "sort":
                factor = -factor
                heap.sort_by(key_of)
        heap.validate()
    assert heap.in_order() == sorted(expected, key=key_of)


@total_ordering
class Counted:
    """A key that counts its comparisons."""

    comparisons = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return isinstance(other, Counted) and self.value == other.value

    def __lt__(self, other: Counted) -> bool:
        Counted.comparisons += 1
        return self.value < other.value

    __hash__ = None  # type: ignore[assignment]


def test_pods_that_come_in_order_are_compared_once_each() -> None:
    heap = PodHeap(lambda queued: Counted(int(queued.uid)))
    pods = [queued_pod(number) for number in range(1000)]
    Counted.comparisons = 0
    for queued in pods:
        heap.put(queued)
    assert [heap.pop() for _ in pods] == pods
    assert Counted.comparisons < 1000
