"""An attempt to bind a pod to a node, and the reasons why attempts fail."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Literal

import msgspec

from moorage.api.pod import Pod
from moorage.engine.decision import Decision, refusal_at_a_node
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.status import Code, Status
from moorage.framework.runtime.framework import Framework
from moorage.queue.queued_pod import QueuedPod

Reason = Literal["Unschedulable", "SchedulerError"]


class Attempt(msgspec.Struct, eq=False):
    """A pod that is being bound. `pod` is the assumed pod, with the node's name in its spec.

    evaluated, feasible: number of nodes that were evaluated, and of those that passed.
    """

    queued: QueuedPod
    pod: Pod
    node_name: str
    framework: Framework
    cycle: CycleState
    evaluated: int = 0
    feasible: int = 0


class Failure(msgspec.Struct, frozen=True):
    """Why an attempt failed: `Unschedulable` if plugins rejected the pod, else `SchedulerError`.

    nominated: the node that preemption nominated; empty: clear the nomination; None: keep it.
    Without rejecting plugins the pod is retried after backoff; otherwise after an event that may help it.
    """

    reason: Reason
    message: str
    nominated: str | None
    unschedulable_plugins: AbstractSet[str] = frozenset()
    pending_plugins: AbstractSet[str] = frozenset()
    of_group: bool = False
    """Whether the pod's group was rejected, not the pod."""


def failure_of_decision(decision: Decision) -> Failure:
    """No node was found for a pod."""
    if decision.error is not None:
        return Failure("SchedulerError", decision.message, nominated="")
    arranged, diagnosis = decision.post_filter, decision.diagnosis
    nominated = "" if arranged is None else arranged.nominated_node
    return Failure("Unschedulable", decision.message, nominated, diagnosis.plugins, diagnosis.pending_plugins)


def failure_at_a_node(status: Status) -> Failure:
    """Reserve or permit rejected a pod on the selected node."""
    if not status.refused:
        return Failure("SchedulerError", status.message, nominated="")
    message = refusal_at_a_node(status)
    refuser = frozenset((status.plugin,))
    if status.code is Code.PENDING:
        return Failure("Unschedulable", message, nominated="", pending_plugins=refuser)
    return Failure("Unschedulable", message, nominated="", unschedulable_plugins=refuser)


def failure_to_bind(status: Status) -> Failure:
    """A pod was not bound; even if a plugin rejected it, there is no event to wait for."""
    return Failure("Unschedulable" if status.refused else "SchedulerError", status.message, nominated="")
