"""The status of scheduler-plugins' PodGroups: phases, counts, and the owners of their pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.api.coscheduling import POD_GROUP_LABEL
from moorage.api.manifests import Manifest
from moorage.client.kinds import CORE_EVENT, COSCHEDULING_POD_GROUP, POD, Kind
from moorage_cluster.addons import AddonName
from moorage_cluster.addons.addon import ADDONS
from moorage_cluster.controllers.coscheduling import PodGroupController, status_changes
from tests.controllers.harness import Harness
from tests.controllers.workloads.objects import bare_pod

DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)
COUNTS = ("running", "succeeded", "failed")


def group(minimum: int = 2, name: str = "train", **status: Any) -> Manifest:
    made = {"metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": minimum}}
    return {**made, "status": status} if status else made


def member(name: str = "a", phase: str = "Pending", **meta: Any) -> Manifest:
    return {**bare_pod(name, {POD_GROUP_LABEL: "train"}, **meta), "status": {"phase": phase}}


def pods(phases: str) -> list[Manifest]:
    """A pod for each letter: Pending, Running, Succeeded, Failed."""
    names = {"P": "Pending", "R": "Running", "S": "Succeeded", "F": "Failed"}
    return [member(f"p{index}", names[phase]) for index, phase in enumerate(phases)]


def counted(phase: str, running: int = 0, succeeded: int = 0, failed: int = 0) -> Manifest:
    """The status of a group whose pods were counted; counts of zero are left out."""
    counts = dict(zip(COUNTS, (running, succeeded, failed), strict=True))
    return {"phase": phase, **{name: count for name, count in counts.items() if count}}


TRANSITIONS: dict[str, tuple[int, str, str, Manifest]] = {
    "new": (2, "", "RR", {"phase": "Pending"}),
    "new, without pods": (2, "", "", {"phase": "Pending"}),
    "too few pods": (3, "Pending", "RR", {"phase": "Pending"}),
    "enough pods, whatever they do": (2, "Pending", "RR", {"phase": "Scheduling"}),
    "no minimum": (0, "Pending", "", {"phase": "Scheduling"}),
    "none runs yet": (2, "Scheduling", "PP", counted("Scheduling")),
    "some run": (3, "Scheduling", "RRP", counted("Scheduling", 2)),
    "enough run": (2, "Scheduling", "RR", counted("Running", 2)),
    "more than enough run": (2, "Scheduling", "RRRR", counted("Running", 4)),
    "those that succeeded count": (2, "Scheduling", "RS", counted("Running", 1, 1)),
    "fewer run": (2, "Running", "RP", counted("Scheduling", 1)),
    "pods are gone": (4, "Running", "PP", counted("Pending")),
    "pods are gone, the others are counted": (4, "Running", "RSF", counted("Pending", 1, 1, 1)),
    "enough succeeded": (2, "Running", "SS", counted("Finished", 0, 2)),
    "enough succeeded, others run": (2, "Running", "SSR", counted("Finished", 1, 2)),
    "enough succeeded, one failed": (2, "Running", "SSF", counted("Finished", 0, 2, 1)),
    "all succeeded at once": (2, "Scheduling", "SS", counted("Finished", 0, 2)),
    "all failed": (2, "Scheduling", "FF", counted("Failed", 0, 0, 2)),
    "one failed": (2, "Running", "RF", counted("Failed", 1, 0, 1)),
    "one failed, too few others": (3, "Scheduling", "RFP", counted("Scheduling", 1, 0, 1)),
    "one failed, enough others": (2, "Running", "RRF", counted("Failed", 2, 0, 1)),
    "a phase of an older controller": (2, "Unknown", "RR", counted("Running", 2)),
}


@pytest.mark.parametrize(
    ("minimum", "phase", "phases", "expected"), TRANSITIONS.values(), ids=TRANSITIONS.keys()
)
def test_a_status_follows_from_the_last_one_and_the_pods(
    minimum: int, phase: str, phases: str, expected: Manifest
) -> None:
    old = {**counted(phase, 9, 9, 9), "occupiedBy": "default/x"} if phase not in ("", "Pending") else {}
    changed = group(minimum, **(old or {"phase": phase}))
    after = {**changed["status"], **status_changes(changed, pods(phases))}
    after.pop("occupiedBy", None)
    assert {field: value for field, value in after.items() if value is not None} == expected


def test_a_status_that_stays_is_not_written() -> None:
    assert status_changes(group(2, **counted("Running", 2)), pods("RR")) == {}
    assert status_changes(group(3, phase="Pending"), pods("RR")) == {}


@pytest.mark.parametrize(
    ("owners", "occupants"),
    [([], None), (["new"], "default/new"), (["b", "a"], "default/a,default/b")],
    ids=["none", "one", "several"],
)
def test_the_owners_of_the_first_pod_occupy_a_group(owners: list[str], occupants: str | None) -> None:
    references = [{"name": name} for name in owners]
    changes = status_changes(group(1, phase="Pending"), [member(ownerReferences=references)])
    assert changes.get("occupiedBy") == occupants
    again = status_changes(group(1, **counted("Running", 1)), [member(ownerReferences=references)])
    assert "occupiedBy" not in again


@pytest.fixture
def cluster() -> Iterator[Harness]:
    with Harness(PodGroupController, run=False) as made:
        (definition,) = ADDONS[AddonName.POD_GROUPS].objects()
        made.create(DEFINITION, definition.manifest)
        made.start()
        yield made


def status(cluster: Harness, name: str = "train") -> Manifest:
    found: Manifest = cluster.get(COSCHEDULING_POD_GROUP, name).get("status", {})
    return found


def set_phase(cluster: Harness, name: str, phase: str) -> None:
    cluster.patch(POD, name, {"status": {"phase": phase}}, subresource="status")


def test_a_group_goes_through_its_phases(cluster: Harness) -> None:
    cluster.create(COSCHEDULING_POD_GROUP, group())
    assert status(cluster) == {"phase": "Pending"}
    cluster.create(POD, member("a"))
    cluster.create(POD, {**member("elsewhere"), "metadata": {"name": "elsewhere", "namespace": "default"}})
    assert status(cluster) == {"phase": "Pending"}
    cluster.create(POD, member("b"))
    assert status(cluster) == {"phase": "Scheduling"}
    set_phase(cluster, "a", "Running")
    assert status(cluster) == counted("Scheduling", 1)
    set_phase(cluster, "b", "Running")
    assert status(cluster) == counted("Running", 2)
    set_phase(cluster, "a", "Succeeded")
    set_phase(cluster, "b", "Succeeded")
    assert status(cluster) == counted("Finished", 0, 2)


def test_the_last_phases_are_final(cluster: Harness) -> None:
    cluster.create(COSCHEDULING_POD_GROUP, group(1))
    cluster.create(POD, member("a"))
    set_phase(cluster, "a", "Failed")
    assert status(cluster) == counted("Failed", 0, 0, 1)
    cluster.create(POD, member("b"))
    set_phase(cluster, "b", "Succeeded")
    assert status(cluster) == counted("Failed", 0, 0, 1)


def test_pods_of_another_namespace_are_not_counted(cluster: Harness) -> None:
    cluster.create(COSCHEDULING_POD_GROUP, group(1))
    away = member("a")
    cluster.create(POD, {**away, "metadata": {**away["metadata"], "namespace": "kube-system"}})
    assert status(cluster) == {"phase": "Pending"}


def test_a_group_whose_pods_leave_is_pending_again(cluster: Harness) -> None:
    cluster.create(COSCHEDULING_POD_GROUP, group(1))
    cluster.create(POD, member("a"))
    set_phase(cluster, "a", "Running")
    assert status(cluster) == counted("Running", 1)
    cluster.patch(POD, "a", {"metadata": {"labels": {POD_GROUP_LABEL: None}}})
    assert status(cluster) == {"phase": "Pending"}


def test_a_group_that_was_begun_too_late_is_left_alone(cluster: Harness) -> None:
    cluster.create(COSCHEDULING_POD_GROUP, group(1))
    late = {"status": {"scheduleStartTime": "2026-03-03T13:00:00Z"}}
    cluster.patch(COSCHEDULING_POD_GROUP, "train", late, subresource="status")
    cluster.create(POD, member("a"))
    assert status(cluster)["phase"] == "Pending"
    events = [(each["reason"], each["message"]) for each in cluster.list(CORE_EVENT)]
    assert set(events) == {("Timeout", "schedule time longer than 48 hours")}
