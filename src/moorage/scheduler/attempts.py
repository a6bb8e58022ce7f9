"""One attempt at a pod that has a node, and what is to be said and done when an attempt comes to nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from moorage.api.pod import Pod
from moorage.engine.decision import Decision
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.status import Code, Status
from moorage.framework.runtime.framework import Framework
from moorage.queue.entry import QueuedPod

Reason = Literal["Unschedulable", "SchedulerError"]


@dataclass(slots=True, eq=False)
class Attempt:
    """A pod on its way to a node. `pod` is the pod as it is going to be: with the node's name in it.

    evaluated, feasible: how many nodes were looked at for it, and how many would have done.
    """

    queued: QueuedPod
    pod: Pod
    node_name: str
    framework: Framework
    cycle: CycleState
    evaluated: int = 0
    feasible: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt came to nothing: `Unschedulable` where plugins refused, else `SchedulerError`.

    nominated: the node that is being freed for the pod; empty: none any more; None: as before.
    Without plugins that refused, the pod is tried again after a pause; otherwise when something may help it.
    """

    reason: Reason
    message: str
    nominated: str | None
    unschedulable_plugins: AbstractSet[str] = frozenset()
    pending_plugins: AbstractSet[str] = frozenset()


def failure_of_decision(decision: Decision) -> Failure:
    """There is no node for a pod."""
    if decision.error is not None:
        return Failure("SchedulerError", decision.message, nominated="")
    arranged, diagnosis = decision.post_filter, decision.diagnosis
    nominated = "" if arranged is None else arranged.nominated_node
    return Failure("Unschedulable", decision.message, nominated, diagnosis.plugins, diagnosis.pending_plugins)


def failure_at_a_node(status: Status) -> Failure:
    """A plugin did not let a pod have the node that was found for it: in reserve or permit."""
    if not status.refused:
        return Failure("SchedulerError", status.message, nominated="")
    reasons = sorted(f"{count} {reason}" for reason, count in Counter(status.reasons).items())
    message = "0/1 nodes are available:" + (f" {', '.join(reasons)}." if reasons else "")
    refuser = frozenset((status.plugin,))
    if status.code is Code.PENDING:
        return Failure("Unschedulable", message, nominated="", pending_plugins=refuser)
    return Failure("Unschedulable", message, nominated="", unschedulable_plugins=refuser)


def failure_to_bind(status: Status) -> Failure:
    """A pod could not be bound; even where a plugin refuses that, there is nothing to wait for."""
    return Failure("Unschedulable" if status.refused else "SchedulerError", status.message, nominated="")
