"""Pods: their container statuses, summarised in one word and in one row."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NamedTuple

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.tables.base import AGE, NAME, TableColumn
from moorage_cluster.apiserver.tables.cells import (
    NONE,
    ago,
    at,
    being_deleted,
    has_condition,
    items,
    mapping,
    number,
    text,
)
from moorage_cluster.apiserver.tables.columns import age_of, name_of

_FINISHED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


class Restarts(NamedTuple):
    """The number of container restarts, and when the last container terminated."""

    times: int = 0
    last: str = ""

    def and_of(self, status: Manifest) -> Restarts:
        """These and one more container's; times are of one form, so that they sort as texts."""
        last = text(status, "lastState", "terminated", "finishedAt")
        return Restarts(self.times + number(status, "restartCount"), max(self.last, last))

    def shown(self, now: datetime) -> str:
        """As in `3 (5m ago)`."""
        if self.times and self.last:
            return f"{self.times} ({ago(self.last, now)} ago)"
        return str(self.times)


class PodSummary(NamedTuple):
    """The summary of a pod's containers."""

    status: str
    ready: int
    restarts: Restarts


def summary(pod: Manifest) -> PodSummary:
    """A pod's state in a few words, as kubectl shows it."""
    result = _initialization(pod, _overall_reason(pod))
    if not result.blocked or has_condition(pod, "Initialized"):
        result = _containers(pod, result)
    status = result.reason
    if being_deleted(pod):
        if text(pod, "status", "reason") == "NodeLost":
            status = "Unknown"
        elif text(pod, "status", "phase") not in _FINISHED:
            status = "Terminating"
    return PodSummary(status, result.ready, result.restarts)


class _Progress(NamedTuple):
    """The intermediate result after a pod's init containers, or after all containers."""

    reason: str
    ready: int
    restarts: Restarts
    sidecar_restarts: Restarts
    blocked: bool


def _overall_reason(pod: Manifest) -> str:
    for each in items(pod, "status", "conditions"):
        if each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return text(pod, "status", "reason") or text(pod, "status", "phase")


def _sidecars(pod: Manifest) -> set[str]:
    return {
        text(each, "name")
        for each in items(pod, "spec", "initContainers")
        if each.get("restartPolicy") == "Always"
    }


def _initialization(pod: Manifest, reason: str) -> _Progress:
    """Evaluate the init containers up to the one that blocks the others, if any."""
    statuses = items(pod, "status", "initContainerStatuses")
    sidecars = _sidecars(pod) if statuses else ()
    ready, restarts, sidecar_restarts = 0, Restarts(), Restarts()
    for index, status in enumerate(statuses):
        is_sidecar = text(status, "name") in sidecars
        restarts = restarts.and_of(status)
        if is_sidecar:
            sidecar_restarts = sidecar_restarts.and_of(status)
        terminated = at(status, "state", "terminated")
        if terminated is not None and number(terminated, "exitCode") == 0:
            continue
        if is_sidecar and status.get("started") is True:
            ready += status.get("ready") is True
            continue
        waiting = text(status, "state", "waiting", "reason")
        if terminated is not None:
            reason = _ending(terminated)
        elif waiting and waiting != "PodInitializing":
            reason = waiting
        else:
            reason = f"{index}/{len(items(pod, 'spec', 'initContainers'))}"
        return _Progress(f"Init:{reason}", ready, restarts, sidecar_restarts, blocked=True)
    return _Progress(reason, ready, restarts, sidecar_restarts, blocked=False)


def _containers(pod: Manifest, before: _Progress) -> _Progress:
    """Evaluate the app containers in reverse: the first one with a reason takes precedence."""
    reason, ready, restarts = before.reason, before.ready, before.sidecar_restarts
    failure = ""
    any_running = False
    for status in reversed(items(pod, "status", "containerStatuses")):
        restarts = restarts.and_of(status)
        state = mapping(status, "state")
        terminated = state.get("terminated")
        if waiting := text(state, "waiting", "reason"):
            reason = waiting
        elif terminated is not None:
            reason = _ending(terminated)
            if number(terminated, "exitCode"):
                failure = reason
        elif status.get("ready") is True and state.get("running") is not None:
            any_running = True
            ready += 1
    if reason == "Completed":
        # A completed container does not determine the state of the others.
        if any_running and _any_ready_condition(pod):
            reason = "Running"
        elif failure:
            reason = failure
        elif any_running:
            reason = "NotReady"
    return before._replace(reason=reason, ready=ready, restarts=restarts)


def _any_ready_condition(pod: Manifest) -> bool:
    return any(
        each.get("type") == "Ready" and each.get("status") == "True"
        for each in items(pod, "status", "conditions")
    )


def _ending(terminated: Any) -> str:
    if reason := text(terminated, "reason"):
        return reason
    if signal := number(terminated, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{number(terminated, 'exitCode')}"


def _readiness_gates(pod: Manifest) -> str:
    gates = items(pod, "spec", "readinessGates")
    if not gates:
        return NONE
    passed = sum(has_condition(pod, text(gate, "conditionType")) for gate in gates)
    return f"{passed}/{len(gates)}"


def _container_count(pod: Manifest) -> int:
    return len(items(pod, "spec", "containers")) + len(_sidecars(pod))


def _ip(pod: Manifest) -> str:
    ips = items(pod, "status", "podIPs")
    return (text(ips[0], "ip") if ips else "") or NONE


class PodPrinter:
    """The table of pods; three of its columns are computed together from the containers."""

    columns = (
        NAME,
        TableColumn("Ready", description="How many of the pod's containers are ready."),
        TableColumn("Status", description="What the pod's containers are doing, in one word."),
        TableColumn(
            "Restarts", description="How often containers were restarted, and when the last time was."
        ),
        AGE,
        TableColumn("IP", description="The pod's first IP address.", priority=1),
        TableColumn("Node", description="The node that the pod is bound to.", priority=1),
        TableColumn("Nominated Node", description="The node that is being cleared for the pod.", priority=1),
        TableColumn("Readiness Gates", description="How many of the extra conditions are met.", priority=1),
    )

    def row(self, obj: Manifest, now: datetime) -> list[Any]:
        """One pod's cells."""
        state = summary(obj)
        return [
            name_of(obj),
            f"{state.ready}/{_container_count(obj)}",
            state.status,
            state.restarts.shown(now),
            age_of(obj, now),
            _ip(obj),
            text(obj, "spec", "nodeName") or NONE,
            text(obj, "status", "nominatedNodeName") or NONE,
            _readiness_gates(obj),
        ]


PODS = PodPrinter()


def row_conditions(obj: Manifest) -> list[dict[str, str]]:
    """The conditions of a pod's row: whether the pod has completed."""
    phase = text(obj, "status", "phase")
    if phase not in _FINISHED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _FINISHED[phase]}]
