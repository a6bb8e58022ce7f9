"""The order in which pods of a set are deleted when it is scaled down.

In this order: not assigned, pending, not ready, lower deletion cost, more pods of the same workload on the
node, ready for less time, more restarts, younger. Times are compared by their order of magnitude, so that
the choice among pods of a similar age is random, and does not always fall on the newest nodes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cmp_to_key
from typing import Final

from moorage.api.conditions import is_ready
from moorage.api.manifests import Manifest, annotations_of
from moorage_cluster.controllers.pods import created_at, is_active, node_of, phase_of, ready_since

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_MAX_COST: Final = 2**31 - 1
_COST_RE: Final = re.compile(r"-[0-9]+|0|[1-9][0-9]*")


def pods_to_delete(
    pods: list[Manifest], count: int, related: Iterable[Manifest], now: datetime
) -> list[Manifest]:
    """The first `count` of a set's pods to delete; `related` are all pods of the same workload."""
    if count >= len(pods):
        return list(pods)
    neighbours = Counter(node_of(pod) for pod in related if is_active(pod))
    return sorted(pods, key=cmp_to_key(_comparison(neighbours, now)))[:count]


def deletion_cost(pod: Manifest) -> int:
    """The deletion cost in a pod's annotation; 0 if invalid."""
    text = annotations_of(pod).get(DELETION_COST, "0")
    cost = int(text) if _COST_RE.fullmatch(text) else 0
    return cost if -_MAX_COST - 1 <= cost <= _MAX_COST else 0


def _comparison(neighbours: Counter[str], now: datetime) -> Callable[[Manifest, Manifest], int]:
    def standing(pod: Manifest) -> tuple[bool, int, bool, int, int]:
        node = node_of(pod)
        return (
            bool(node),
            _PHASES.get(phase_of(pod), 0),
            is_ready(pod),
            deletion_cost(pod),
            -neighbours[node],
        )

    def compare(one: Manifest, other: Manifest) -> int:
        first, second = standing(one), standing(other)
        if first != second:
            return -1 if first < second else 1
        by_readiness = _compare_ages(ready_since(one), ready_since(other), one, other, now)
        if by_readiness:
            return by_readiness
        restarts, other_restarts = _restarts(one), _restarts(other)
        if restarts != other_restarts:
            return -1 if restarts > other_restarts else 1
        return _compare_ages(created_at(one), created_at(other), one, other, now)

    return compare


def _compare_ages(
    since: datetime | None, other_since: datetime | None, one: Manifest, other: Manifest, now: datetime
) -> int:
    if since == other_since:
        return 0
    if since is None or other_since is None:
        return -1 if since is None else 1
    difference = _magnitude(since, now) - _magnitude(other_since, now)
    if difference:
        return -1 if difference < 0 else 1
    return -1 if one["metadata"]["uid"] < other["metadata"]["uid"] else 1


def _magnitude(since: datetime, now: datetime) -> int:
    nanoseconds = (now - since).total_seconds() * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def _restarts(pod: Manifest) -> tuple[int, int]:
    """The highest restart counts of a pod's containers and of its sidecars."""
    status = pod.get("status") or {}
    sidecars = {
        container["name"]
        for container in pod["spec"].get("initContainers") or []
        if container.get("restartPolicy") == "Always"
    }
    plain = [each.get("restartCount", 0) for each in status.get("containerStatuses") or []]
    beside = [
        each.get("restartCount", 0)
        for each in status.get("initContainerStatuses") or []
        if each.get("name") in sidecars
    ]
    return max(plain, default=0), max(beside, default=0)
