"""The rule of GPUFragmentation once more: one node, one expected pod and one resource at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Requests = Mapping[str, int]


class PlainNode(NamedTuple):
    """A node: what it has, how many pods it takes, and what its pods request."""

    has: Requests
    max_pods: int
    pods: Sequence[Requests]


class Expected(NamedTuple):
    """An expected pod, and the number of such pods."""

    requests: Requests
    number: int


def fits(node: PlainNode, requests: Requests, names: Iterable[str]) -> bool:
    """Whether there is room for one more pod, of the resources that any expected pod requests."""
    if len(node.pods) >= node.max_pods:
        return False
    return all(free(node, name) >= requests.get(name, 0) for name in names)


def free(node: PlainNode, name: str) -> int:
    return node.has.get(name, 0) - sum(each.get(name, 0) for each in node.pods)


def score(node: PlainNode, pod: Requests, expected: Sequence[Expected], gpu: str, unit: int = 1) -> int:
    """50 if the fragments stay as they are; each more, or less, has less and less weight."""
    if free(node, gpu) <= 0 or not expected:
        return 50
    names = {gpu}.union(*(each.requests for each in expected))
    total = sum(each.number * each.requests[gpu] for each in expected)
    weights = [max(each.number * each.requests[gpu] * 2**20 // total, 1) for each in expected]
    then = PlainNode(node.has, node.max_pods, [*node.pods, pod])
    before, after = (
        sum(
            weight * max(free(each, gpu), 0)
            for weight, one in zip(weights, expected, strict=True)
            if not fits(each, one.requests, names)
        )
        for each in (node, then)
    )
    change, one_gpu = after - before, sum(weights) * unit
    return 50 * (one_gpu + abs(change) - change) // (one_gpu + abs(change))


def learned(nodes: Iterable[PlainNode], gpu: str, at_most: int) -> list[Expected]:
    """The expected pods, if they are learned from those on nodes."""
    counts = Counter(tuple(sorted(pod.items())) for node in nodes for pod in node.pods if pod.get(gpu))
    kinds = [Expected(dict(requests), _two_digits(count)) for requests, count in counts.items()]
    return sorted(kinds, key=lambda each: (-each.number * each.requests[gpu], sorted(each.requests.items())))[
        :at_most
    ]


def _two_digits(count: int) -> int:
    return max(each << shift for each in (1, 2, 3) for shift in range(20) if each << shift <= count)
