"""Nodes and pods as the page shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from moorage.api.node import Node, Taint
from moorage.api.pod import Pod
from moorage.api.resource_requests import PODS, current_requests, resource_amounts, whole_units
from moorage.ui.documents import NodeState, PodState

_READY: Final = "Ready"


def node_state(node: Node) -> NodeState:
    """A node for the page."""
    return NodeState(
        labels=dict(node.labels),
        allocatable=_allocatable(node),
        taints=tuple(map(_taint_text, node.spec.taints)),
        conditions=tuple(_problems(node)),
        unschedulable=node.spec.unschedulable,
        created=_seconds(node.metadata.creation_timestamp),
    )


def _allocatable(node: Node) -> dict[str, int]:
    allocatable = node.status.allocatable
    amounts = resource_amounts(allocatable)
    if (pods := allocatable.get(PODS)) is not None:
        amounts[PODS] = whole_units(PODS, pods)
    return amounts


def _taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _problems(node: Node) -> list[str]:
    found = []
    for each in node.status.conditions:
        if each.type == _READY and each.status != "True":
            found.append("NotReady")
        elif each.type != _READY and each.status == "True":
            found.append(each.type)
    return found


def pod_state(pod: Pod) -> PodState:
    """A pod for the page."""
    scheduled = next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
    is_waiting = not pod.spec.node_name and scheduled is not None and scheduled.status != "True"
    group = pod.spec.scheduling_group
    return PodState(
        node=pod.spec.node_name,
        requests=resource_amounts(current_requests(pod)),
        priority=pod.spec.priority or 0,
        phase=pod.status.phase,
        scheduler=pod.spec.scheduler_name,
        reason=scheduled.reason if is_waiting and scheduled is not None else "",
        message=scheduled.message if is_waiting and scheduled is not None else "",
        nominated_node=pod.status.nominated_node_name,
        group=(group.pod_group_name or "") if group is not None else "",
        labels=dict(pod.labels),
        deleting=pod.metadata.deletion_timestamp is not None,
        created=_seconds(pod.metadata.creation_timestamp),
        uid=pod.uid,
    )


def _seconds(moment: datetime | None) -> float:
    return 0.0 if moment is None else moment.timestamp()
