"""A pod that has to go gets the time that it asked for, and whom it goes for gets its place."""

from __future__ import annotations

from collections.abc import Callable

from tests.end_to_end.scenarios.stage import Stage, condition, node_of
from tests.end_to_end.scenarios.watching import Change, Watch
from tests.up.objects import Manifest, pod, priority_class

GRACE_SECONDS = 25


def first(watch: Watch, name: str, holds: Callable[[Change], bool]) -> int:
    """When something was first seen of an object: its place among all that happened."""
    return next(index for index, change in enumerate(watch.changes) if change.name == name and holds(change))


def nominated_node(pod: Manifest) -> str:
    return str(pod["status"].get("nominatedNodeName", ""))


def has_ended(pod: Manifest) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def test_a_victim_has_its_grace_period_and_the_preemptor_its_nomination(stage: Stage) -> None:
    stage.add_node("n1", cpu="2")
    stage.kubectl.create(
        priority_class("above", 100), priority_class("never", 100) | {"preemptionPolicy": "Never"}
    )
    scheduler = stage.start()
    stage.user.create(
        pod("victim", cpu="1500m", terminationGracePeriodSeconds=GRACE_SECONDS), pod("spared", cpu="100m")
    )
    stage.wait("Ready", "victim", "spared")
    pods = stage.watch()
    pods.until(lambda there: len(there) == 2)
    stage.user.create(pod("patient", cpu="1500m", priorityClassName="never"))
    stage.wait("PodScheduled=False", "patient")
    stage.user.create(pod("preemptor", cpu="1500m", priorityClassName="above"))
    there = pods.until(lambda there: node_of(there.get("preemptor", {"spec": {}})) == "n1")
    scheduler.stop()
    assert node_of(there["patient"]) == ""
    assert "deletionTimestamp" not in there["spared"]["metadata"]

    going = first(pods, "victim", lambda change: "deletionTimestamp" in change.object["metadata"])
    gone = first(pods, "victim", lambda change: change.type == "DELETED" or has_ended(change.object))
    nominated = first(pods, "preemptor", lambda change: nominated_node(change.object) == "n1")
    bound = first(pods, "preemptor", lambda change: node_of(change.object) == "n1")
    assert nominated < gone < bound
    assert going < gone
    victim = pods.changes[going].object
    assert victim["metadata"]["deletionGracePeriodSeconds"] == GRACE_SECONDS
    assert victim["status"]["phase"] == "Running"  # It is on its way, and works until it has ended.
    target = condition(victim, "DisruptionTarget")
    assert {key: target[key] for key in ("status", "reason", "message", "observedGeneration")} == {
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "default-scheduler: preempting to accommodate a higher priority pod",
        "observedGeneration": 1,
    }
    # The binding ends the nomination.
    assert nominated_node(pods.changes[bound].object) == ""
    uid = there["preemptor"]["metadata"]["uid"]
    (event,) = stage.events("Preempted")
    assert (event["regarding"]["name"], event["note"]) == ("victim", f"Preempted by pod {uid} on node n1")
    patient = condition(there["patient"], "PodScheduled")["message"]
    assert patient.endswith("preemption: not eligible due to preemptionPolicy=Never.")
