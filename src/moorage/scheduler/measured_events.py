"""How long it takes to take in what happens in the cluster, by kind of event.

Labels are those of the events that pods wait for (`NodeAdd`, `AssignedPodDelete`). An update of a node or a
pod counts once for each thing about it that has changed. Kinds that no pod waits for have no event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any, Final

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.client import kinds
from moorage.client.declared_kinds import object_type
from moorage.client.informer import EventType, Informer, Listener
from moorage.client.kinds import Kind
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.queue.cluster_events import ASSIGNED_POD_ADD
from moorage.queue.event_of_change import PodEvents, node_events
from moorage.scheduler.event_handlers import event_resource
from moorage.services.metric_values import Distribution
from moorage.services.metrics import Metrics

Labels = Callable[[EventType, Any, Any | None], Iterable[str]]
"""What metrics call a change: of which type, of which object, and what that was before."""

INFORMERS: Final = "kube-scheduler"
"""What metrics call the informers of this process."""
_ACTIONS: Final = {"ADDED": "Add", "MODIFIED": "Update", "DELETED": "Delete"}
_ASSIGNED_UPDATE: Final = "AssignedPodUpdate"


def time_events(informers: Sequence[Informer[Any]], metrics: Metrics) -> None:
    """From now on, measure how long changes take to arrive in cache and queue."""
    for informer in informers:
        kind = informer.kind
        latency = metrics.informer_duration.labels(INFORMERS, kind.group, kind.version, kind.plural)
        labels = _labels_of(kind, metrics.version)
        informer.listeners[:] = [_timed(each, labels, latency, metrics) for each in informer.listeners]


def _timed(listener: Listener[Any], labels: Labels, latency: Distribution, metrics: Metrics) -> Listener[Any]:
    observe, durations = latency.observe, metrics.event_handling_duration
    observe_by_label: dict[str, Callable[[float], None]] = {}

    def listen(type: EventType, obj: Any, before: Any | None) -> None:
        began = perf_counter()
        listener(type, obj, before)
        seconds = perf_counter() - began
        observe(seconds)
        for label in labels(type, obj, before):
            observe_one = observe_by_label.get(label)
            if observe_one is None:
                observe_one = observe_by_label[label] = durations.labels(label).observe
            observe_one(seconds)

    return listen


def _labels_of(kind: Kind, version: KubernetesVersion) -> Labels:
    if kind == kinds.POD:
        return _PodLabels(PodEvents(version.target_pod_events))
    if kind == kinds.NODE:
        return _of_node
    known = object_type(kind)
    name = kind.resource if known is None else event_resource(known)
    if name is None:
        return lambda type, obj, before: ()
    # A rule that comes or goes is an update of the slices whose devices it taints.
    actions = dict.fromkeys(_ACTIONS, "Update") if kind == kinds.DEVICE_TAINT_RULE else _ACTIONS
    by_type = {type: (f"{name}{action}",) for type, action in actions.items()}
    return lambda type, obj, before: by_type[type]


def _of_node(type: EventType, obj: Node, before: Node | None) -> Iterable[str]:
    if type != "MODIFIED" or before is None:
        return (f"Node{_ACTIONS[type]}",)
    return [event.label for event in node_events(before, obj)]


class _PodLabels:
    """What metrics call changes of pods."""

    def __init__(self, events: PodEvents) -> None:
        self._events = events
        self._unscheduled = {
            "ADDED": (events.added.label,),
            "MODIFIED": (events.updated.label,),
            "DELETED": (events.deleted.label,),
        }
        self._bound = (events.deleted.label, ASSIGNED_POD_ADD.label)
        """A pod that is bound leaves those that wait, and comes to those on nodes."""

    def __call__(self, type: EventType, obj: Pod, before: Pod | None) -> Iterable[str]:
        is_assigned = bool(obj.spec.node_name)
        if type != "MODIFIED" or before is None:
            return (f"AssignedPod{_ACTIONS[type]}",) if is_assigned else self._unscheduled[type]
        if is_assigned and not before.spec.node_name:
            return self._bound
        general = _ASSIGNED_UPDATE if is_assigned else self._events.updated.label
        return {general: None, **{event.label: None for event in self._events.of_update(before, obj)}}
