"""The objects that a simulated cluster begins with, made ready for a server that has none of their past."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from moorage.admission.system_objects import SYSTEM_NAMESPACES, SYSTEM_PRIORITIES
from moorage.api.conditions import condition_status
from moorage.api.manifests import Manifest, moment
from moorage.simulation.virtual_loop import DEFAULT_EPOCH
from moorage_cluster.nodes.simulation import HEARTBEATS, STOPPED

_READY: Final = "Ready"
_TIMES: Final = frozenset(
    (
        "creationTimestamp",
        "deletionTimestamp",
        "startTime",
        "completionTime",
        "lastScheduleTime",
        "lastTransitionTime",
        "startedAt",
        "finishedAt",
    )
)
"""The fields with the times of what has happened."""


def beginning(dump: Sequence[Manifest], others: Sequence[Manifest]) -> list[Manifest]:
    """The objects of a dump, with the namespaces and priority classes that it refers to but does not have.

    Nodes that are not ready stay disconnected.
    others: objects that are created later.
    """
    needed = (*_missing_namespaces([*dump, *others]), *_missing_classes(dump))
    return [*needed, *(_as_it_was(each) if each.get("kind") == "Node" else each for each in dump)]


def namespace_of(name: str) -> Manifest:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def class_of(name: str, priority: int) -> Manifest:
    """A priority class."""
    meta = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": meta,
        "value": priority,
    }


def _missing_namespaces(dump: Iterable[Manifest]) -> Iterator[Manifest]:
    known = {*SYSTEM_NAMESPACES, *_names(dump, "Namespace")}
    used = dict.fromkeys(str(each["metadata"].get("namespace") or "") for each in dump if "metadata" in each)
    return (namespace_of(name) for name in used if name and name not in known)


def _missing_classes(dump: Iterable[Manifest]) -> Iterator[Manifest]:
    known = {*SYSTEM_PRIORITIES, *_names(dump, "PriorityClass")}
    specs = [each.get("spec") or {} for each in dump if each.get("kind") == "Pod"]
    used = {str(spec.get("priorityClassName") or ""): int(spec.get("priority") or 0) for spec in specs}
    return (class_of(name, value) for name, value in used.items() if name and name not in known)


def _names(dump: Iterable[Manifest], kind: str) -> Iterator[str]:
    return (str(each["metadata"].get("name")) for each in dump if each.get("kind") == kind)


def _as_it_was(node: Manifest) -> Manifest:
    """A node whose kubelet does not change that it is not ready."""
    if condition_status(node, _READY) in ("", "True"):
        return node
    meta = node["metadata"]
    return {
        **node,
        "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), HEARTBEATS: STOPPED}},
    }


def beginning_time(dump: Iterable[Manifest]) -> datetime:
    """The wall time at which a simulation begins: not before anything in its objects has happened."""
    return max([DEFAULT_EPOCH, *(known for each in dump for text in _times(each) if (known := _known(text)))])


def _known(text: str) -> datetime | None:
    """The time of a timestamp; None if it is none."""
    try:
        time = moment(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def _times(obj: Manifest) -> Iterator[str]:
    return (text for part in ("metadata", "status") for text in _said(obj.get(part)))


def _said(value: Any) -> Iterator[str]:
    """The timestamps in a value and in its parts."""
    if isinstance(value, list):
        for each in value:
            yield from _said(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key in _TIMES and isinstance(each, str):
                yield each
            else:
                yield from _said(each)
