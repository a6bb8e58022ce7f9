"""What users are told: events and conditions, field by field, as kube-scheduler v1.36 writes them."""

from __future__ import annotations

import re
import socket
from datetime import datetime

from tests.end_to_end.scenarios.stage import Stage, condition, lift_gates
from tests.up.objects import Manifest, pod, priority_class
from tests.up.running import TIMEOUT_SECONDS

INSTANCE = f"default-scheduler-{socket.gethostname()}"
NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."
NO_VICTIMS = "0/1 nodes are available: 1 No preemption victims found for incoming pod."
VARYING = ("creationTimestamp", "name", "resourceVersion", "uid")


def reference(pod: Manifest) -> Manifest:
    """A pod as events refer to it; the version is the one that it had when the event happened."""
    meta = pod["metadata"]
    names = {key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {"apiVersion": "v1", "kind": "Pod", **names}


def unvarying(event: Manifest) -> Manifest:
    """An event without its name and its times, once these are seen to be as they should be."""
    name, _, nanoseconds = event["metadata"]["name"].rpartition(".")
    assert name == event["regarding"]["name"]
    at = datetime.fromisoformat(event["eventTime"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event["eventTime"])
    assert abs(int(nanoseconds, 16) / 1e9 - at.timestamp()) < 1.0
    metadata = {key: value for key, value in event["metadata"].items() if key not in VARYING}
    assert not any(value for key, value in event.items() if key.startswith("deprecated"))
    kept = (key for key in event if key not in ("metadata", "eventTime") and not key.startswith("deprecated"))
    return {"metadata": metadata, **{key: event[key] for key in kept}}


def event_of(stage: Stage, regarding: Manifest, **fields: object) -> Manifest:
    """An event as the API server gives it."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": stage.namespace},
        "reportingController": "default-scheduler",
        "reportingInstance": INSTANCE,
        "regarding": regarding,
        **fields,
    }


def test_events_have_every_field_as_kube_scheduler_writes_it(stage: Stage) -> None:
    stage.add_node("n1", cpu="2")
    stage.kubectl.create(priority_class("higher", 100))
    pods = stage.watch()
    stage.user.create(pod("lesser", cpu="1500m", terminationGracePeriodSeconds=20))
    pods.until(lambda there: "lesser" in there)
    scheduler = stage.start()
    stage.wait("PodScheduled", "lesser")
    stage.user.create(pod("greater", cpu="1500m", priorityClassName="higher"))
    stage.wait("PodScheduled", "greater")
    stage.user.create(pod("waits", cpu="1"))
    stage.wait("PodScheduled=False", "waits")
    scheduler.stop()

    lesser, greater, waits = (
        [reference(change.object) for change in pods.changes if change.name == name]
        for name in ("lesser", "greater", "waits")
    )
    (scheduled,) = stage.events("Scheduled", "lesser")
    assert unvarying(scheduled) == event_of(
        stage,
        lesser[0],
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned {stage.namespace}/lesser to n1",
    )
    (preempted,) = stage.events("Preempted", "lesser")
    assert preempted["regarding"] in lesser
    assert unvarying(preempted) == event_of(
        stage,
        preempted["regarding"],
        related=greater[0],
        type="Normal",
        reason="Preempted",
        action="Preempting",
        note=f"Preempted by pod {greater[0]['uid']} on node n1",
    )
    (failed,) = stage.events("FailedScheduling", "waits")
    assert unvarying(failed) == event_of(
        stage,
        waits[0],
        type="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note=f"{NO_ROOM} preemption: {NO_VICTIMS}",
    )

    shown = stage.user("get", "events", "--field-selector=involvedObject.name=waits", "--no-headers")
    assert re.fullmatch(rf"\S+ +Warning +FailedScheduling +pod/waits +{re.escape(failed['note'])}\n", shown)
    described = stage.user("describe", "pod", "waits").splitlines()[-1]
    told = rf" +Warning +FailedScheduling +\S+ +default-scheduler +{re.escape(failed['note'])}"
    assert re.fullmatch(told, described), described


def test_what_happens_again_becomes_a_series(stage: Stage) -> None:
    stage.add_node("n1", cpu="2")
    scheduler = stage.start()
    in_the_way = [f"in-the-way-{number}" for number in range(3)]
    stage.user.create(*(pod(name, cpu="600m") for name in in_the_way))
    stage.wait("PodScheduled", *in_the_way)
    events = stage.watch("events.events.k8s.io")

    def until_failed(*counts: int) -> list[Manifest]:
        """Wait until the pod's failures have happened so often; the answer is the events, oldest first."""

        def failures(there: dict[str, Manifest]) -> list[Manifest]:
            told = [event for event in there.values() if event["reason"] == "FailedScheduling"]
            return sorted(told, key=lambda event: str(event["eventTime"]))

        def holds(there: dict[str, Manifest]) -> bool:
            return [(event.get("series") or {}).get("count", 1) for event in failures(there)] == [*counts]

        return failures(events.until(holds))

    stage.user.create(pod("waits", cpu="1900m"))
    until_failed(1)
    stage.user("delete", "pod", in_the_way[0], "--grace-period=0", "--force")
    # The pod has a condition by now, which makes another version of it, and another event.
    until_failed(1, 1)
    stage.user("delete", "pod", in_the_way[1], "--grace-period=0", "--force")
    _, repeated = until_failed(1, 2)
    assert repeated["note"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert repeated["series"].keys() == {"count", "lastObservedTime"}
    assert repeated["series"]["lastObservedTime"] > repeated["eventTime"]
    shown = stage.user("describe", "pod", "waits").splitlines()[-1]
    assert re.match(r" +Warning +FailedScheduling +\S+ \(x2 over \S+\) +default-scheduler +0/1 nodes", shown)
    stage.user("delete", "pod", in_the_way[2], "--grace-period=0", "--force")
    stage.wait("PodScheduled", "waits")
    scheduler.stop()


def test_conditions_have_every_field_as_kube_scheduler_writes_it(stage: Stage) -> None:
    stage.add_node("n1", cpu="2")
    stage.start()
    stage.user.create(pod("p", cpu="3", schedulingGates=[{"name": "example.com/later"}]))
    gated = condition_of(stage)
    assert gated == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastTransitionTime": gated["lastTransitionTime"],
    }
    lift_gates(stage, "p")
    stage.user(
        "wait", "pod/p", "--for=jsonpath={.status.conditions[0].reason}=Unschedulable", TIMEOUT_SECONDS
    )
    assert condition_of(stage) == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient cpu. preemption: "
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        # The status has been False all the time, and the pod's specification is another one now.
        "lastTransitionTime": gated["lastTransitionTime"],
        "observedGeneration": 2,
    }
    pods = stage.watch()
    pods.until(lambda there: "p" in there)
    stage.add_node("n2", cpu="4")
    pods.until_bound(1)
    bound = next(change.object for change in pods.changes if "nodeName" in change.object["spec"])
    # The API server writes this one, and the kubelet adds to it later.
    scheduled = dict(condition(bound, "PodScheduled"))
    assert scheduled.pop("lastTransitionTime") >= gated["lastTransitionTime"]
    assert scheduled == {"type": "PodScheduled", "status": "True"}


def condition_of(stage: Stage) -> Manifest:
    """The one condition that a pod without a node has; a time that is not set is as good as none."""
    (only,) = stage.pod("p")["status"]["conditions"]
    return {key: value for key, value in only.items() if value is not None}
