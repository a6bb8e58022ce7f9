"""The usage of nodes as objects: NodeMetrics of metrics.k8s.io, and the reading that cycles see.

What a cycle reads is in its snapshot, as other objects are. A reading is therefore an object in the
informers' caches, which is replaced when usage was read; a snapshot has it from its next refresh on. Where
nothing is read, as in `moorage decide` and `explain`, NodeMetrics of files or of the API server are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from moorage import (
    Object,
    Objects,
    ResourceList,
    Struct,
    declare_kind,
    microseconds,
    parse_duration,
    resource_amounts,
)

SECOND: Final = 1_000_000
"""A second, in microseconds."""
MAX_AMOUNT: Final = 1 << 48
"""The most that is counted of a resource (256 TiB of memory): sums of thousands of pods fit an int64."""


class NodeMetrics(Object):
    """The usage of a node, over a window of time that ends at the timestamp."""

    timestamp: datetime | None = None
    window: str = "0s"
    usage: ResourceList = {}


NODE_METRICS: Final = declare_kind("metrics.k8s.io/v1beta1", "nodes", NodeMetrics, namespaced=False)


class NodeUsage(Struct):
    """What a node used of cpu (in milli-CPU) and memory (in bytes) in a window of time.

    begin, end: the window, in microseconds since 1970.
    """

    cpu: int
    memory: int
    begin: int
    end: int


Usage = Mapping[str, NodeUsage]
"""What nodes use, by their names."""


class UsageReadings(Object):
    """What was read last, for each profile with the plugin."""

    of_profiles: dict[str, dict[str, NodeUsage]] = {}


TABLES: Final = (UsageReadings, NodeMetrics)


def usage_of(metrics: NodeMetrics) -> NodeUsage:
    """The usage in an object of metrics.k8s.io; ValueError if it has none that can be read."""
    if metrics.timestamp is None:
        raise ValueError("it has no timestamp")
    missing = [name for name in ("cpu", "memory") if name not in metrics.usage]
    if missing:
        raise ValueError(f"it has no usage of {missing[0]}")
    amounts = resource_amounts(metrics.usage)
    window_seconds = parse_duration(metrics.window)
    return node_usage(amounts["cpu"], amounts["memory"], microseconds(metrics.timestamp), window_seconds)


def node_usage(cpu: int, memory: int, end: int, window_seconds: float) -> NodeUsage:
    """Amounts that were used in a window of time; negative amounts are none."""
    begin = end - round(max(window_seconds, 0.0) * SECOND)
    return NodeUsage(cpu=_counted(cpu), memory=_counted(memory), begin=begin, end=end)


def _counted(amount: int) -> int:
    return min(max(amount, 0), MAX_AMOUNT)


def reading_of(objects: Objects, profile: str) -> Usage:
    """What was read last for a profile; empty if nothing was."""
    readings = objects.of(UsageReadings).get("", "")
    return {} if readings is None else readings.of_profiles.get(profile, {})


def put_reading(objects: Objects, profile: str, usage: Usage) -> None:
    """Replace what was read for a profile."""
    readings = objects.of(UsageReadings).get("", "") or UsageReadings()
    objects.put(UsageReadings(of_profiles={**readings.of_profiles, profile: dict(usage)}))


def known_usage(objects: Objects, profile: str) -> Usage:
    """The usage of nodes that a cycle counts with: what was read, or else what objects say."""
    if read := reading_of(objects, profile):
        return read
    known = {}
    for metrics in objects.of(NodeMetrics):
        try:
            known[metrics.name] = usage_of(metrics)
        except (ValueError, OverflowError, OSError):
            continue  # The node counts as one without usage.
    return known
