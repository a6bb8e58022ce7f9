"""Budgets: how many pods may be taken away now."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.manifests import Manifest, timestamp
from moorage.client.kinds import (
    DAEMON_SET,
    DEPLOYMENT,
    POD,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    STATEFUL_SET,
    Kind,
)
from moorage_cluster.controllers.disruption import Disruption, StaleDisruption
from tests.controllers.harness import Harness
from tests.controllers.infrastructure.objects import condition, pod

LABELS = {"app": "web"}


def budget(**spec: Any) -> Manifest:
    return {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": LABELS}, **spec},
    }


def workload(kind: Kind, name: str, replicas: int | None, owner: Manifest | None = None) -> Manifest:
    meta: Manifest = {"name": name, "namespace": "default"}
    if owner:
        meta["ownerReferences"] = [controlled_by(owner)]
    spec: Manifest = {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": pod("x")["spec"]},
    }
    if kind == STATEFUL_SET:
        spec["serviceName"] = "web"
    if replicas is not None:
        spec["replicas"] = replicas
    return {"metadata": meta, "spec": spec}


def controlled_by(owner: Manifest) -> Manifest:
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def add_pods(
    harness: Harness, count: int, ready: int, owner: Manifest | None = None, prefix: str = "p"
) -> None:
    for number in range(count):
        one = pod(f"{prefix}{number}", LABELS)
        if owner:
            one["metadata"]["ownerReferences"] = [controlled_by(owner)]
        harness.create(POD, one)
    harness.run_pods(where=lambda each: int(each["metadata"]["name"].removeprefix(prefix)) < ready)


def status(harness: Harness) -> Manifest:
    found: Manifest = harness.get(POD_DISRUPTION_BUDGET, "b")["status"]
    return found


def allowed(harness: Harness) -> tuple[str, str]:
    found = condition(harness.get(POD_DISRUPTION_BUDGET, "b"), "DisruptionAllowed")
    return found["status"], found["reason"]


# What the budget says, how many replicas there are to be, pods and ready pods of those that are there;
# then expected, desired, healthy and allowed.
COUNTS: dict[str, tuple[dict[str, Any], int, int, int, tuple[int, int, int, int]]] = {
    "at least so many": ({"minAvailable": 2}, 3, 3, 3, (3, 2, 3, 1)),
    "at least so many, and one is not ready": ({"minAvailable": 2}, 3, 3, 2, (3, 2, 2, 0)),
    "at least so many, of the pods that are there": ({"minAvailable": 2}, 10, 3, 3, (3, 2, 3, 1)),
    "at least a part, rounded up": ({"minAvailable": "50%"}, 5, 5, 5, (5, 3, 5, 2)),
    "at least a part, of the pods that should be": ({"minAvailable": "50%"}, 10, 5, 5, (10, 5, 5, 0)),
    "at most so few less": ({"maxUnavailable": 1}, 4, 4, 4, (4, 3, 4, 1)),
    "at most so few less, and one is missing": ({"maxUnavailable": 1}, 4, 3, 3, (4, 3, 3, 0)),
    "at most a part less, rounded up": ({"maxUnavailable": "30%"}, 5, 5, 5, (5, 3, 5, 2)),
    "more than there are": ({"maxUnavailable": 9}, 3, 3, 3, (3, 0, 3, 3)),
    "none at all": ({"maxUnavailable": 0}, 3, 3, 3, (3, 3, 3, 0)),
}


@pytest.mark.parametrize("case", COUNTS)
def test_a_budget_of(case: str) -> None:
    spec, replicas, pods, ready, (expected, desired, healthy, disruptions) = COUNTS[case]
    with Harness(Disruption) as harness:
        owner = harness.create(REPLICA_SET, workload(REPLICA_SET, "web", replicas))
        add_pods(harness, pods, ready, owner)
        harness.create(POD_DISRUPTION_BUDGET, budget(**spec))
        found = status(harness)
        assert found["expectedPods"] == expected
        assert found["desiredHealthy"] == desired
        assert found["currentHealthy"] == healthy
        assert found["disruptionsAllowed"] == disruptions
        assert found["observedGeneration"] == 1
        assert allowed(harness) == (
            ("True", "SufficientPods") if disruptions else ("False", "InsufficientPods")
        )


def test_a_budget_follows_its_pods() -> None:
    with Harness(Disruption) as harness:
        harness.create(POD_DISRUPTION_BUDGET, budget(minAvailable=1))
        assert harness.events("b") == [("NoPods", "No matching pods found")]
        assert status(harness)["disruptionsAllowed"] == 0
        add_pods(harness, 2, 2)
        assert status(harness)["disruptionsAllowed"] == 1
        harness.patch(POD, "p0", {"metadata": {"labels": {"app": "other"}}})
        assert status(harness)["disruptionsAllowed"] == 0
        assert status(harness)["expectedPods"] == 1
        harness.delete(POD, "p1", grace_seconds=0)
        assert status(harness)["expectedPods"] == 0


@pytest.mark.parametrize("kind", [DEPLOYMENT, STATEFUL_SET], ids=lambda kind: kind.name)
def test_the_replicas_are_those_of_the_topmost_controller(kind: Kind) -> None:
    with Harness(Disruption) as harness:
        owner = harness.create(kind, workload(kind, "web", 8))
        if kind == DEPLOYMENT:
            owner = harness.create(REPLICA_SET, workload(REPLICA_SET, "web-1", 2, owner))
        add_pods(harness, 2, 2, owner)
        harness.create(POD_DISRUPTION_BUDGET, budget(maxUnavailable="25%"))
        assert (status(harness)["expectedPods"], status(harness)["desiredHealthy"]) == (8, 6)


def test_pods_of_what_has_no_scale_cannot_be_counted() -> None:
    with Harness(Disruption) as harness:
        owner = harness.create(DAEMON_SET, workload(DAEMON_SET, "web", None))
        add_pods(harness, 2, 2, owner)
        harness.create(POD_DISRUPTION_BUDGET, budget(maxUnavailable=1))
        found = condition(harness.get(POD_DISRUPTION_BUDGET, "b"), "DisruptionAllowed")
        assert (found["status"], found["reason"]) == ("False", "SyncFailed")
        assert found["message"] == "daemonsets.apps does not implement the scale subresource"
        assert status(harness)["disruptionsAllowed"] == 0
        assert harness.events("b") == [
            (
                "CalculateExpectedPodCountFailed",
                "Failed to calculate the number of expected pods: daemonsets.apps does not implement the "
                "scale subresource",
            )
        ]
        # An absolute number needs no scale.
        harness.patch(POD_DISRUPTION_BUDGET, "b", {"spec": {"maxUnavailable": None, "minAvailable": 1}})
        assert allowed(harness) == ("True", "SufficientPods")


def test_pods_without_controller_are_warned_of() -> None:
    with Harness(Disruption) as harness:
        add_pods(harness, 2, 2)
        harness.create(POD_DISRUPTION_BUDGET, budget(maxUnavailable=1))
        assert status(harness)["expectedPods"] == 0
        [(reason, message)] = harness.events("b")
        assert reason == "UnmanagedPods"
        assert message.startswith(
            "Pods selected by this PodDisruptionBudget (selector: &LabelSelector{MatchLabels:"
            "map[string]string{app: web,},MatchExpressions:[]LabelSelectorRequirement{},}) were found to be "
            "unmanaged."
        )


def test_a_pod_whose_eviction_was_allowed_counts_again_after_two_minutes() -> None:
    with Harness(Disruption) as harness:
        add_pods(harness, 3, 3)
        harness.create(POD_DISRUPTION_BUDGET, budget(minAvailable=1))
        assert status(harness)["disruptionsAllowed"] == 2
        disrupted = {"p0": timestamp(harness.now()), "gone": timestamp(harness.now())}
        harness.patch(
            POD_DISRUPTION_BUDGET, "b", {"status": {"disruptedPods": disrupted}}, subresource="status"
        )
        assert status(harness)["disruptedPods"] == {"p0": disrupted["p0"]}
        assert status(harness)["disruptionsAllowed"] == 1
        harness.advance(119, step=119)
        assert status(harness)["disruptionsAllowed"] == 1
        harness.advance(2)
        assert "disruptedPods" not in status(harness)
        assert status(harness)["disruptionsAllowed"] == 2
        assert harness.events("p0") == [
            ("NotDeleted", "Pod was expected by PDB default/default to be deleted but it wasn't")
        ]


def test_a_threat_that_nothing_came_of_is_taken_back_after_two_minutes() -> None:
    with Harness(StaleDisruption) as harness:
        harness.create(POD, pod("p"))
        threat = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "m",
        }
        harness.run_pods(conditions=[threat])
        harness.advance(118, step=118)
        assert condition(harness.get(POD, "p"), "DisruptionTarget")["status"] == "True"
        harness.advance(3)
        found = condition(harness.get(POD, "p"), "DisruptionTarget")
        assert found["status"] == "False"
        assert not found.get("reason")
        assert condition(harness.get(POD, "p"), "Ready")["status"] == "True"
