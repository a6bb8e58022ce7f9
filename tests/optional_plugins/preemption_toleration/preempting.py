"""Pods that run, classes that protect them, and a preemptor: for tests of PreemptionToleration."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from moorage import Node, Pod
from moorage.api.decode import convert
from moorage.optional_plugins.preemption_toleration.policy import (
    MINIMUM_PREEMPTABLE_PRIORITY,
    TOLERATION_SECONDS,
    PriorityClass,
)
from tests.builders import make_node, make_pod, pod

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def priority_class(
    name: str, value: int, minimum: str | None = None, seconds: str | None = None
) -> PriorityClass:
    """A PriorityClass with the annotations that are given."""
    given = {MINIMUM_PREEMPTABLE_PRIORITY: minimum, TOLERATION_SECONDS: seconds}
    annotations = {key: text for key, text in given.items() if text is not None}
    manifest = {"metadata": {"name": name, "annotations": annotations}, "value": value}
    return convert(manifest, PriorityClass)


def small(name: str) -> Node:
    """A node with room for two pods of one CPU."""
    return make_node(name, allocatable={"cpu": "2", "memory": "8Gi", "pods": "10"})


def boss(priority: int = 1000, cpu: str = "2", age: float = 0.0, name: str = "boss") -> Pod:
    """The preemptor, which was created some seconds ago."""
    manifest = pod(name, uid=name, requests={"cpu": cpu}, priority=priority)
    manifest["metadata"]["creationTimestamp"] = _time(age)
    return convert(manifest, Pod)


def running(
    name: str, node: str, priority: int, of_class: str = "", ago: float | None = 0.0, cpu: str = "1"
) -> Pod:
    """A pod on a node that was scheduled some seconds ago; None: it is being bound."""
    return make_pod(
        name,
        uid=name,
        on=node,
        requests={"cpu": cpu},
        priority=priority,
        priority_class_name=of_class or None,
        status={"conditions": [*conditions(ago)]},
    )


def conditions(ago: float | None) -> Iterable[dict[str, str]]:
    """The condition of a pod that was scheduled some seconds ago."""
    if ago is not None:
        yield {"type": "PodScheduled", "status": "True", "lastTransitionTime": _time(ago)}


def _time(ago: float) -> str:
    return (NOW - timedelta(seconds=ago)).isoformat().replace("+00:00", "Z")
