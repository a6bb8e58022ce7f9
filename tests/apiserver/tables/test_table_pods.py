from __future__ import annotations

from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.tables.pods import row_conditions
from tests.apiserver.tables.table_rows import an_object, before, shown

RUNNING: Manifest = {"running": {}}
PENDING_INIT = {"waiting": {"reason": "PodInitializing"}}
CRASHING = {"waiting": {"reason": "CrashLoopBackOff"}}
COMPLETED = {"terminated": {"exitCode": 0, "reason": "Completed"}}
FAILED = {"terminated": {"exitCode": 1, "reason": "Error"}}
BARE_EXIT = {"terminated": {"exitCode": 3}}
KILLED = {"terminated": {"exitCode": 137, "signal": 9}}
READY = {"type": "Ready", "status": "True"}
INITIALIZED = {"type": "Initialized", "status": "True"}
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}


def container(
    state: dict[str, Any],
    name: str = "c",
    ready: bool = False,
    restarts: int = 0,
    ended: str = "",
    **more: Any,
) -> dict[str, Any]:
    last = {"lastState": {"terminated": {"exitCode": 1, "finishedAt": ended}}} if ended else {}
    return {"name": name, "state": state, "ready": ready, "restartCount": restarts, **last, **more}


def pod(
    *statuses: dict[str, Any],
    phase: str = "Running",
    init: tuple[dict[str, Any], ...] = (),
    sidecars: tuple[str, ...] = (),
    init_containers: int | None = None,
    conditions: tuple[dict[str, Any], ...] = (),
    deleted: bool = False,
    containers: int | None = None,
    **status: Any,
) -> dict[str, Any]:
    count = len(statuses) if containers is None else containers
    names = [each["name"] for each in init]
    names += [f"later-{i}" for i in range((init_containers or len(names)) - len(names))]
    return an_object(
        "web",
        {"deletionTimestamp": before(seconds=3)} if deleted else {},
        spec={
            "containers": [{"name": f"c{i}", "image": "i"} for i in range(count)],
            "initContainers": [
                {"name": name, **({"restartPolicy": "Always"} if name in sidecars else {})} for name in names
            ],
        },
        status={
            "phase": phase,
            "containerStatuses": list(statuses),
            "initContainerStatuses": list(init),
            "conditions": list(conditions),
            **status,
        },
    )


UP = container(RUNNING, ready=True)

STATES = {
    "only a phase": (pod(phase="Pending", containers=1), "0/1", "Pending", "0"),
    "nothing at all": ({"metadata": {"name": "web"}}, "0/0", "", "0"),
    "running": (pod(UP), "1/1", "Running", "0"),
    "running, one not ready": (pod(UP, container(RUNNING)), "1/2", "Running", "0"),
    "evicted": (pod(phase="Failed", reason="Evicted", containers=1), "0/1", "Evicted", "0"),
    "gated": (pod(phase="Pending", containers=1, conditions=(GATED,)), "0/1", "SchedulingGated", "0"),
    "gated says more than a reason": (
        pod(phase="Pending", reason="Why", containers=1, conditions=(GATED,)),
        "0/1",
        "SchedulingGated",
        "0",
    ),
    "waiting": (pod(container(CRASHING)), "0/1", "CrashLoopBackOff", "0"),
    "waiting without a reason": (pod(container({"waiting": {}}), phase="Pending"), "0/1", "Pending", "0"),
    "the first container has the last word": (
        pod(container(CRASHING), container(FAILED)),
        "0/2",
        "CrashLoopBackOff",
        "0",
    ),
    "completed": (pod(container(COMPLETED), phase="Succeeded"), "0/1", "Completed", "0"),
    "failed": (pod(container(FAILED), phase="Failed"), "0/1", "Error", "0"),
    "ended without a reason": (pod(container(BARE_EXIT), phase="Failed"), "0/1", "ExitCode:3", "0"),
    "killed without a reason": (pod(container(KILLED), phase="Failed"), "0/1", "Signal:9", "0"),
    "one is done, the pod is ready": (
        pod(container(COMPLETED), UP, conditions=(READY,)),
        "1/2",
        "Running",
        "0",
    ),
    "one is done, the pod is not ready": (pod(container(COMPLETED), UP), "1/2", "NotReady", "0"),
    "one is done, one failed": (pod(container(COMPLETED), container(FAILED)), "0/2", "Error", "0"),
    "one is done, one failed, one runs": (
        pod(container(COMPLETED), container(FAILED), UP),
        "1/3",
        "Error",
        "0",
    ),
    "init: waits for its turn": (
        pod(containers=1, phase="Pending", init=(container(PENDING_INIT, "a"), container(PENDING_INIT, "b"))),
        "0/1",
        "Init:0/2",
        "0",
    ),
    "init: first is done": (
        pod(containers=1, phase="Pending", init=(container(COMPLETED, "a"), container(RUNNING, "b"))),
        "0/1",
        "Init:1/2",
        "0",
    ),
    "init: some have no status yet": (
        pod(containers=1, phase="Pending", init=(container(RUNNING, "a"),), init_containers=3),
        "0/1",
        "Init:0/3",
        "0",
    ),
    "init: cannot start": (
        pod(containers=1, phase="Pending", init=(container({"waiting": {"reason": "ErrImagePull"}}),)),
        "0/1",
        "Init:ErrImagePull",
        "0",
    ),
    "init: failed": (pod(containers=1, init=(container(FAILED),)), "0/1", "Init:Error", "0"),
    "init: exit code": (pod(containers=1, init=(container(BARE_EXIT),)), "0/1", "Init:ExitCode:3", "0"),
    "init: signal": (pod(containers=1, init=(container(KILLED),)), "0/1", "Init:Signal:9", "0"),
    "init: what follows does not count": (
        pod(UP, init=(container(FAILED, "a", restarts=2), container(RUNNING, "b", restarts=7))),
        "0/1",
        "Init:Error",
        "2",
    ),
    "init: is over, its restarts with it": (
        pod(UP, init=(container(COMPLETED, "a", restarts=2),)),
        "1/1",
        "Running",
        "0",
    ),
    "init: stuck, but once was through": (
        pod(container(CRASHING, restarts=4), init=(container(FAILED, "a"),), conditions=(INITIALIZED,)),
        "0/1",
        "CrashLoopBackOff",
        "4",
    ),
    "sidecar: up": (
        pod(UP, init=(container(RUNNING, "s", ready=True, started=True),), sidecars=("s",)),
        "2/2",
        "Running",
        "0",
    ),
    "sidecar: started, not ready": (
        pod(UP, init=(container(RUNNING, "s", started=True),), sidecars=("s",)),
        "1/2",
        "Running",
        "0",
    ),
    "sidecar: not started": (
        pod(
            containers=1,
            phase="Pending",
            init=(container(RUNNING, "s", started=False), container(PENDING_INIT, "a")),
            sidecars=("s",),
        ),
        "0/2",
        "Init:0/2",
        "0",
    ),
    "sidecar: its restarts stay": (
        pod(
            container(RUNNING, ready=True, restarts=1),
            init=(container(RUNNING, "s", ready=True, started=True, restarts=3),),
            sidecars=("s",),
        ),
        "2/2",
        "Running",
        "4",
    ),
    "deleted": (pod(UP, deleted=True), "1/1", "Terminating", "0"),
    "deleted, crashing": (pod(container(CRASHING), deleted=True), "0/1", "Terminating", "0"),
    "deleted when done": (
        pod(container(COMPLETED), phase="Succeeded", deleted=True),
        "0/1",
        "Completed",
        "0",
    ),
    "deleted, its node lost": (pod(UP, deleted=True, reason="NodeLost"), "1/1", "Unknown", "0"),
    "restarts, times unknown": (pod(container(RUNNING, ready=True, restarts=3)), "1/1", "Running", "3"),
    "restarts, the last time counts": (
        pod(
            container(RUNNING, ready=True, restarts=3, ended=before(minutes=5)),
            container(RUNNING, ready=True, restarts=2, ended=before(hours=30)),
        ),
        "2/2",
        "Running",
        "5 (5m ago)",
    ),
    "restarts of a sidecar": (
        pod(
            container(RUNNING, ready=True),
            init=(container(RUNNING, "s", ready=True, started=True, restarts=1, ended=before(seconds=90)),),
            sidecars=("s",),
        ),
        "2/2",
        "Running",
        "1 (90s ago)",
    ),
    "restarts of an init container that fails": (
        pod(containers=1, init=(container(CRASHING, "a", restarts=6, ended=before(minutes=2, seconds=10)),)),
        "0/1",
        "Init:CrashLoopBackOff",
        "6 (2m10s ago)",
    ),
    "ended before, never restarted": (
        pod(container(RUNNING, ready=True, ended=before(minutes=5))),
        "1/1",
        "Running",
        "0",
    ),
}


@pytest.mark.parametrize(("obj", "ready", "status", "restarts"), STATES.values(), ids=STATES)
def test_state_of_a_pod(obj: dict[str, Any], ready: str, status: str, restarts: str) -> None:
    cells = shown("", "Pod", obj)
    assert (cells["Ready"], cells["Status"], cells["Restarts"]) == (ready, status, restarts)


def test_whole_row() -> None:
    obj = pod(UP, podIP="10.0.0.1", podIPs=[{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], nominatedNodeName="n2")
    obj["spec"]["nodeName"] = "n1"
    assert shown("", "Pod", obj) == {
        "Name": "web",
        "Ready": "1/1",
        "Status": "Running",
        "Restarts": "0",
        "Age": "5m",
        "IP": "10.0.0.1",
        "Node": "n1",
        "Nominated Node": "n2",
        "Readiness Gates": "<none>",
    }


def test_what_is_not_known_yet() -> None:
    cells = shown("", "Pod", {"metadata": {}})
    assert cells["Age"] == "<unknown>"
    assert [cells[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")] == ["<none>"] * 4


def test_readiness_gates() -> None:
    obj = pod(UP, conditions=({"type": "a", "status": "True"}, {"type": "b", "status": "False"}))
    obj["spec"]["readinessGates"] = [{"conditionType": name} for name in ("a", "b", "c")]
    assert shown("", "Pod", obj)["Readiness Gates"] == "1/3"


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Running", []),
        ("Succeeded", [("Completed", "True", "Succeeded", "The pod has completed successfully.")]),
        ("Failed", [("Completed", "True", "Failed", "The pod failed.")]),
    ],
)
def test_rows_of_finished_pods_say_so(phase: str, expected: list[tuple[str, ...]]) -> None:
    found = row_conditions(pod(phase=phase))
    assert [tuple(each[key] for key in ("type", "status", "reason", "message")) for each in found] == expected
