"""Restoring pods that ran before their kubelet started, from their statuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moorage.api.manifests import Manifest
from moorage_cluster.nodes.containers import UNKNOWN_STATUS, ContainerRun, Role, Running, Terminated
from moorage_cluster.nodes.podrun import FINISHED, PodOutcome, PodRun
from moorage_cluster.nodes.simulated_workload import KILLED

_GONE: Final = "The container could not be located when its kubelet was started"

SecondsOf = Callable[[str], float]
"""A timestamp as a moment of the clock."""


def restore(run: PodRun, seconds_of: SecondsOf, now: float) -> None:
    """Continue a pod from its status."""
    status = run.manifest.get("status") or {}
    run.ip = "" if run.sandbox is not None else status.get("podIP") or ""
    if "startTime" in status:
        run.started_at = seconds_of(status["startTime"])
    if status.get("phase") in FINISHED:
        run.outcome = PodOutcome(status["phase"], status.get("reason") or "", status.get("message") or "")
    known = {
        each["name"]: each
        for key in ("containerStatuses", "initContainerStatuses")
        for each in status.get(key) or ()
    }
    for container in run.containers:
        if container.name in known:
            _restore_container(container, known[container.name], seconds_of, now)
            if run.outcome is None:
                container.resume(now)
    if run.sandbox is not None and run.outcome is None and run.manifest["spec"]["restartPolicy"] != "Never":
        _start_again(run)


def _start_again(run: PodRun) -> None:
    """Restart a pod without sandbox from its init containers, as the kubelet does after a reboot."""
    for container in run.containers:
        if not container.workload.is_simulated:
            container.renew()


def was_running(manifest: Manifest) -> bool:
    """Whether a kubelet has already started a pod."""
    status = manifest.get("status") or {}
    return status.get("phase") in ("Running", *FINISHED) or any(
        "running" in (each.get("state") or {}) for each in status.get("initContainerStatuses") or ()
    )


def _restore_container(container: ContainerRun, status: Manifest, seconds_of: SecondsOf, now: float) -> None:
    state = status.get("state") or {}
    container.restarts = status.get("restartCount", 0)
    container.container_id = status.get("containerID", "")
    if last := (status.get("lastState") or {}).get("terminated"):
        container.last = _terminated(last, seconds_of)
    if running := state.get("running"):
        since = seconds_of(running["startedAt"])
        container.state = Running(since)
        container.is_started, container.is_ready = bool(status.get("started")), bool(status.get("ready"))
        if not container.workload.adopt(since, is_ready=container.is_ready):
            container.end(now, KILLED, UNKNOWN_STATUS, _GONE)
    elif terminated := state.get("terminated"):
        container.state = _terminated(terminated, seconds_of)
        container.is_ready = container.role is Role.INIT and container.state.exit_code == 0


def _terminated(state: Manifest, seconds_of: SecondsOf) -> Terminated:
    since, until = state.get("startedAt"), state.get("finishedAt")
    return Terminated(
        state.get("exitCode", 0),
        state.get("reason", ""),
        state.get("message", ""),
        seconds_of(since) if since else None,
        seconds_of(until) if until else None,
        state.get("containerID", ""),
    )
