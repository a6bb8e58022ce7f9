"""The next sizes of a deployment's sets: pure functions of sizes and availability."""

from __future__ import annotations

import math

from moorage.api.manifests import Manifest, status_of
from moorage_cluster.controllers.deployment_sets import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    Sets,
    annotation_number,
    by_age,
    counted,
    fenceposts,
    is_rolling,
    size_of,
    total_size,
)

Sizes = list[tuple[Manifest, int]]
"""Sets and the size each is to have."""


def is_resized(deployment: Manifest, sets: Sets) -> bool:
    """Whether the deployment's size differs from the one in its sets' annotations."""
    annotated = (annotation_number(each, DESIRED_REPLICAS) for each in sets.active)
    return any(desired is not None and desired != size_of(deployment) for desired in annotated)


def new_size(deployment: Manifest, sets: Sets) -> int:
    """The size of the new set: as many as desired, up to the surge limit."""
    size = size_of(deployment)
    if not is_rolling(deployment):
        return size
    known = size_of(sets.new) if sets.new is not None else 0
    if known >= size:
        return size
    surge, _ = fenceposts(deployment)
    # Old pods count until they are terminating, otherwise the surge limit would be exceeded.
    old = sum(max(size_of(each), counted([each], "replicas")) for each in sets.old)
    room = size + surge - old - known
    return known + max(0, min(room, size - known))


def old_sizes(deployment: Manifest, sets: Sets) -> Sizes:
    """The sizes of the old sets: unhealthy pods are removed first, then those that are not needed."""
    assert sets.new is not None
    old = by_age([each for each in sets.old if size_of(each) > 0])
    _, max_unavailable = fenceposts(deployment)
    min_available = size_of(deployment) - max_unavailable
    new_unavailable = size_of(sets.new) - _available(sets.new)
    most = total_size(sets.all) - min_available - new_unavailable
    if most <= 0:
        return []
    sizes = {each["metadata"]["name"]: size_of(each) for each in old}
    broken_left = most
    for each in old:
        name = each["metadata"]["name"]
        taken = max(0, min(broken_left, sizes[name] - _available(each)))
        sizes[name] -= taken
        broken_left -= taken
    spare = _available(sets.new) + sum(map(_available, old)) - min_available
    for each in old:
        name = each["metadata"]["name"]
        taken = max(0, min(spare, sizes[name]))
        sizes[name] -= taken
        spare -= taken
    return [(each, sizes[each["metadata"]["name"]]) for each in old]


def resized(deployment: Manifest, sets: Sets) -> Sizes:
    """The sizes of sets after the deployment's size has changed, during a rollout or not."""
    size = size_of(deployment)
    active = sets.active
    if not sets.all:
        return []
    if len(active) <= 1:
        only = active[0] if active else sets.new or by_age(sets.old)[-1]
        return [(only, size)]
    if sets.new is not None and _is_saturated(deployment, sets.new):
        return [(each, 0) for each in sets.old if size_of(each) > 0]
    return _in_proportion(deployment, active) if is_rolling(deployment) else []


def _in_proportion(deployment: Manifest, active: list[Manifest]) -> Sizes:
    size, (surge, _) = size_of(deployment), fenceposts(deployment)
    to_add = (size + surge if size > 0 else 0) - total_size(active)
    # The largest set gets the rounding remainder; of equal ones the newest grows, the oldest shrinks.
    ordered = by_age(active) if to_add < 0 else by_age(active)[::-1]
    ordered.sort(key=size_of, reverse=True)
    added = 0
    sizes: Sizes = []
    for each in ordered:
        part = _proportion(deployment, each, size + surge)
        left = to_add - added
        part = min(part, left) if to_add > 0 else max(part, left) if to_add < 0 else 0
        sizes.append((each, size_of(each) + part))
        added += part
    largest, its_size = sizes[0]
    sizes[0] = (largest, max(0, its_size + to_add - added))
    return sizes


def _proportion(deployment: Manifest, replica_set: Manifest, most: int) -> int:
    """The change of a set's size in proportion to the others."""
    size = size_of(replica_set)
    if size_of(deployment) == 0:
        return -size
    most_before = annotation_number(replica_set, MAX_REPLICAS) or int(
        status_of(deployment).get("replicas") or 0
    )
    if most_before == 0:
        return 0
    return math.floor(size * most / most_before + 0.5) - size


def _is_saturated(deployment: Manifest, new: Manifest) -> bool:
    size = size_of(deployment)
    return size == size_of(new) == annotation_number(new, DESIRED_REPLICAS) == _available(new)


def _available(replica_set: Manifest) -> int:
    """Number of available pods that a set keeps: its status may be from before it was scaled down."""
    return min(size_of(replica_set), int(status_of(replica_set).get("availableReplicas") or 0))
