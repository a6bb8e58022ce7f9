"""Log lines about pods in the queue, worded as kube-scheduler's; callers check the verbosity first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from moorage.api.pod import Pod
from moorage.api.pod_groups import GroupKey
from moorage.klog import Logger, kobj
from moorage.queue.cluster_events import SCHEDULE_ATTEMPT_FAILURE, ClusterEvent
from moorage.queue.queued_group import QueuedGroup
from moorage.queue.queued_pod import QueuedPod
from moorage.queue.queueing_rules import Interested

log = Logger(__name__)

_MOVED = "Pod moved to an internal scheduling queue"
_QUEUES = {
    "active": "Active",
    "backoff": "Backoff",
    "unschedulable": "Unschedulable",
    "gated": "Unschedulable",
}
"""The names of the queues in the log."""


def moved(queued: QueuedPod, event: str, place: str, why: str = "") -> None:
    """An event moved a pod into a queue."""
    about: dict[str, Any] = {"pod": kobj(queued.pod)}
    if isinstance(queued, QueuedGroup):
        about["podGroup"] = str(queued.key)
    log.info(5, f"{_MOVED}{why}", **about, event=event, queue=_QUEUES[place])


def put_back(queued: QueuedPod, event: str, place: str, cycle: int, hint: int) -> None:
    """A pod was put back after an attempt."""
    values = {
        "schedulingCycle": cycle,
        "hint": hint,
        "unschedulable plugins": set(queued.rejector_plugins()),
    }
    log.info(3, _MOVED, pod=kobj(queued.pod), event=event, queue=_QUEUES[place], **values)


def in_flight(queued: QueuedPod, event_count: int, pod_count: int) -> None:
    """The events that a pod missed in flight are about to be checked."""
    log.info(
        5,
        "Checking events for in-flight pod",
        pod=kobj(queued.pod),
        unschedulablePlugins=queued.unschedulable_plugins,
        inFlightEventsSize=event_count + pod_count,
        inFlightPodsSize=pod_count,
    )


def updated_in_flight(pod: Pod) -> None:
    """A pod was updated while it is in flight."""
    message = (
        "The pod doesn't need to be queued for now because it's being scheduled "
        "and will be queued back if necessary"
    )
    log.info(6, message, pod=kobj(pod))


def unwanted(event: ClusterEvent) -> None:
    """No enabled plugin is interested in an event."""
    message = "receive an event that isn't interested by any enabled plugins"
    log.info(6, message, event=event.shown())


def noted(event: ClusterEvent) -> None:
    """An event is kept for the pods in flight."""
    log.info(5, "Event received while pods are in flight", event=event.label)


def unhelped(
    waiting: Iterable[QueuedPod],
    helped: Collection[QueuedPod],
    event: ClusterEvent,
    interested: Interested,
    precheck: Callable[[Pod], bool] | None,
) -> None:
    """Some of the unschedulable pods are not requeued by an event."""
    uids = {queued.uid for queued in helped}
    for queued in waiting:
        gate = (queued.profile, queued.gating_plugin)
        if queued.uid in uids or (queued.gating_plugin and gate not in interested.interests):
            continue
        if precheck is None or precheck(queued.pod):
            log.info(5, "Event is not making pod schedulable", pod=kobj(queued.pod), event=event.label)


def member_waits(pod: Pod, group: GroupKey, place: str) -> None:
    """A member of a group waits outside of its group's entry."""
    if place == "incomplete":
        message = (
            "Pod with pod group added to incompletePodGroupPods, "
            "waiting for one or more parent pod group objects to be observed"
        )
        log.info(5, message, podGroup=group.name, pod=kobj(pod))
    else:
        message = "Pod added to pending pod group pods, waiting for its root group to be requeued"
        log.info(5, message, podGroup=str(group), pod=kobj(pod))


def group_put_back(group: QueuedGroup, place: str, cycle: int) -> None:
    """A group was put back after an attempt."""
    values = {"event": SCHEDULE_ATTEMPT_FAILURE, "queue": _QUEUES[place], "schedulingCycle": cycle}
    message = "Pod group moved to an internal scheduling queue"
    log.info(3, message, podGroup=str(group.key), **values)
