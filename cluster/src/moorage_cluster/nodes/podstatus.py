"""A pod's status, as its kubelet writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from moorage.api.manifests import Manifest
from moorage_cluster.nodes.containers import ContainerRun, Role, Running, Terminated
from moorage_cluster.nodes.images import digest_name, full_name
from moorage_cluster.nodes.podrun import PodRun, waiting_reason

Moment = Callable[[float], str]
"""A moment of the clock as a timestamp."""

READY: Final = "Ready"
_DISRUPTED: Final = "DisruptionTarget"
_RESIZE_PENDING: Final = "PodResizePending"
_ENDED: Final = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}


def pod_status(run: PodRun, host_ip: str, now: float, moment: Moment) -> Manifest:
    """The status to write; conditions are remembered for their last transition times."""
    status: Manifest = {"phase": run.phase}
    if run.outcome is not None and run.outcome.reason:
        status |= {"reason": run.outcome.reason, "message": run.outcome.message}
    if generation := run.manifest["metadata"].get("generation"):
        status["observedGeneration"] = generation
    if run.started_at is not None:
        status["startTime"] = moment(run.started_at)
    if run.containers:
        status |= {"hostIP": host_ip, "hostIPs": [{"ip": host_ip}]}
        status["containerStatuses"] = [_container_status(run, each, moment) for each in run.mains]
    if run.inits:
        status["initContainerStatuses"] = [_container_status(run, each, moment) for each in run.inits]
    if run.ip:
        status |= {"podIP": run.ip, "podIPs": _addresses(run)}
    status["conditions"] = [_dated(run, each, now, moment) for each in _conditions(run)]
    if not run.pending_resize and run.conditions.pop(_RESIZE_PENDING, None) is not None:
        status["conditions"].append({"$patch": "delete", "type": _RESIZE_PENDING})
    return status


def _addresses(run: PodRun) -> list[Manifest]:
    """The pod's address, as the only one: a patch would keep the previous one."""
    before = (run.manifest.get("status") or {}).get("podIP") or run.ip
    return [{"ip": run.ip}] if before == run.ip else [{"$patch": "replace"}, {"ip": run.ip}]


def ready_status(run: PodRun) -> str:
    """What the Ready condition should be."""
    status: str = _ready(run, _containers_ready(run))["status"]
    return status


# -- containers


def _container_status(run: PodRun, container: ContainerRun, moment: Moment) -> Manifest:
    image = container.spec["image"]
    began = container.has_begun and bool(container.container_id)
    status: Manifest = {
        "name": container.name,
        "image": full_name(image) if began else image,
        "imageID": digest_name(image) if began else "",
        "ready": container.is_ready,
        "started": container.is_started,
        "restartCount": container.restarts,
        "state": _state(run, container, moment),
        "lastState": {} if container.last is None else {"terminated": _terminated(container.last, moment)},
    }
    if began:
        status["containerID"] = container.container_id
    if began and container.role is not Role.INIT:
        resources = container.spec.get("resources") or {}
        status["resources"] = resources
        if requests := resources.get("requests"):
            status["allocatedResources"] = requests
    return status


def _state(run: PodRun, container: ContainerRun, moment: Moment) -> Manifest:
    state = container.state
    if isinstance(state, Running):
        return {"running": {"startedAt": moment(state.since)}}
    if isinstance(state, Terminated):
        return {"terminated": _terminated(state, moment)}
    waiting = waiting_reason(run, container)
    return {"waiting": _without_empty(reason=waiting.reason, message=waiting.message)}


def _terminated(state: Terminated, moment: Moment) -> Manifest:
    return {
        "exitCode": state.exit_code,
        **_without_empty(
            reason=state.reason,
            message=state.message,
            startedAt=None if state.since is None else moment(state.since),
            finishedAt=None if state.until is None else moment(state.until),
            containerID=state.container_id,
        ),
    }


def _without_empty(**fields: Any) -> Manifest:
    return {name: value for name, value in fields.items() if value}


# -- conditions


def _conditions(run: PodRun) -> Iterable[Manifest]:
    if run.is_disrupted and run.outcome is not None:
        yield _condition(_DISRUPTED, True, "TerminationByKubelet", run.outcome.message)
    if run.pending_resize:
        yield _condition(_RESIZE_PENDING, True, "Deferred", run.pending_resize)
    yield _condition("PodReadyToStartContainers", run.has_sandbox)
    yield _initialized(run)
    containers_ready = _containers_ready(run)
    yield _ready(run, containers_ready)
    yield {**containers_ready, "type": "ContainersReady"}
    yield _condition("PodScheduled", True)


def _condition(type: str, holds: bool, reason: str = "", message: str = "") -> Manifest:
    return {"type": type, "status": "True" if holds else "False", "reason": reason, "message": message}


def _initialized(run: PodRun) -> Manifest:
    if run.phase == "Succeeded":
        return _condition("Initialized", True, "PodCompleted")
    missing = [
        each.name
        for each in run.inits
        if not (each.has_begun if each.role is Role.SIDECAR else each.is_ready)
    ]
    if not missing or any(each.has_begun for each in run.mains):
        return _condition("Initialized", True)
    message = f"containers with incomplete status: [{' '.join(missing)}]"
    return _condition("Initialized", False, "ContainersNotInitialized", message)


def _containers_ready(run: PodRun) -> Manifest:
    if run.phase in _ENDED:
        return _condition(READY, False, _ENDED[run.phase])
    serving = [each for each in run.containers if each.role is not Role.INIT]
    missing = [each.name for each in serving if not each.is_ready]
    if not missing:
        return _condition(READY, True)
    return _condition(
        READY, False, "ContainersNotReady", f"containers with unready status: [{' '.join(missing)}]"
    )


def _ready(run: PodRun, containers_ready: Manifest) -> Manifest:
    """The Ready condition: True if all containers are ready and all readiness gates are True."""
    gates = run.manifest["spec"].get("readinessGates") or ()
    if containers_ready["status"] != "True" or not gates:
        return containers_ready
    known = {each["type"]: each["status"] for each in run.manifest.get("status", {}).get("conditions") or ()}
    problems = []
    for gate in gates:
        type = gate["conditionType"]
        if type not in known:
            problems.append(f'corresponding condition of pod readiness gate "{type}" does not exist.')
        elif known[type] != "True":
            problems.append(f'the status of pod readiness gate "{type}" is not "True", but {known[type]}')
    if not problems:
        return containers_ready
    return _condition(READY, False, "ReadinessGatesNotReady", ", ".join(problems))


def _dated(run: PodRun, condition: Manifest, now: float, moment: Moment) -> Manifest:
    before = run.conditions.get(condition["type"])
    if before is not None and before["status"] == condition["status"]:
        since = before.get("lastTransitionTime") or moment(now)
    else:
        since = moment(now)
    dated: Manifest = {**condition, "lastTransitionTime": since}
    if generation := run.manifest["metadata"].get("generation"):
        dated["observedGeneration"] = generation
    # An empty reason or message is absent; null removes the previous one.
    for key in ("reason", "message"):
        dated[key] = dated[key] or None
    run.conditions[condition["type"]] = dated
    return dated
